//! Datasets: the samples of many shards, by number.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use crate::batch::Batch;
use crate::builder::DatasetBuilder;
use crate::error::Result;
use crate::native::{self, sys};
use crate::sample::Sample;

/// The samples of many shards by number: plain tar shards and ZIP files.
///
/// It does not change once it is open and takes no locks: any number of threads may use it at
/// once, by reference. Where the samples of a tar lie is kept in an index file beside it, made when
/// it is missing or stale (options `index` and `index_dir`).
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// # let folder = std::env::temp_dir();
/// let data = shardfeed::Dataset::builder().index_dir(folder).open(["train-{000..002}.tar"])?;
/// assert_eq!(data.len(), 9);
/// let sample = data.get(5)?;
/// let samples = data.get_many(&[7, 5, 8])?; // one call, several threads
/// assert_eq!(samples[1].key(), sample.key());
/// assert_eq!(data.find("a/0005")?, 5);
/// # Ok::<(), shardfeed::Error>(())
/// ```
///
/// `len`, `get` and `get_many` are those that the data sets of burn have:
///
/// ```
/// # struct DatasetError(shardfeed::Error);
/// # impl From<shardfeed::Error> for DatasetError { fn from(e: shardfeed::Error) -> Self { Self(e) } }
/// # trait Dataset<I>: Send + Sync {
/// #     fn get(&self, index: usize) -> Result<I, DatasetError>;
/// #     fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<I>, DatasetError>;
/// #     fn len(&self) -> usize;
/// # }
/// struct Shards(shardfeed::Dataset);
///
/// impl Dataset<shardfeed::Sample> for Shards {
///     fn get(&self, index: usize) -> Result<shardfeed::Sample, DatasetError> {
///         Ok(self.0.get(index)?)
///     }
///     fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<shardfeed::Sample>, DatasetError> {
///         Ok(self.0.get_many(&indexes)?)
///     }
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
/// ```
pub struct Dataset(native::Dataset);

/// Index files of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexFormat {
    /// DALI, version 1.0, with the size before the offset; read: also rocAL's.
    Dali1_0,
    /// DALI, version 1.1, without names of members.
    Dali1_1,
    /// DALI, version 1.2: what `wds2idx` writes.
    Dali1_2,
    /// `SHARD.tar.idx` of Megatron-Energon.
    Energon,
    /// The list of shards of wids, in JSON.
    Wids,
}

impl IndexFormat {
    fn code(self) -> i32 {
        match self {
            IndexFormat::Dali1_0 => sys::SHF_INDEX_DALI_1_0,
            IndexFormat::Dali1_1 => sys::SHF_INDEX_DALI_1_1,
            IndexFormat::Dali1_2 => sys::SHF_INDEX_DALI_1_2,
            IndexFormat::Energon => sys::SHF_INDEX_ENERGON,
            IndexFormat::Wids => sys::SHF_INDEX_WIDS,
        }
    }
}

impl DatasetBuilder {
    /// Opens a dataset over the shards that the URLs name, files all of them. Indexes that are
    /// missing or of another version of their shard are made, as the option `index` says.
    ///
    /// # Errors
    ///
    /// As [`StreamBuilder::open`](crate::StreamBuilder::open); any class that a damaged shard can
    /// have; `Unsupported` for a compressed tar; with `index=require` `NotFound` and `Changed`.
    pub fn open<U>(&self, urls: U) -> Result<Dataset>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        native::Dataset::open(&native::Urls::new(urls)?, &self.options()?).map(Dataset)
    }

    /// Makes the index of the tar at `url` and saves it where a dataset looks for it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); `Io` when it cannot be saved.
    pub fn build_index(&self, url: impl AsRef<OsStr>) -> Result<()> {
        native::build_index(url.as_ref(), &self.options()?)
    }

    /// Writes the index that another tool needs into the file `path`, which appears whole or not at
    /// all. DALI and Energon have one index for each shard, wids one for all.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); `Usage` (another number of shards than one, no file); `Unsupported`
    /// for names that the format cannot hold; `Io`, `NoSpace` when the file cannot be written.
    pub fn export_index<U>(
        &self,
        urls: U,
        format: IndexFormat,
        path: impl AsRef<Path>,
    ) -> Result<()>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        let (urls, path) = (native::Urls::new(urls)?, path.as_ref().as_os_str());
        native::export_index(&urls, format.code(), path, &self.options()?)
    }

    /// Takes over the index of another tool in the file `path`: makes the index of the tar at `url`
    /// and saves it when the other index says the same of every sample. An index of wids names its
    /// shards itself: then there is no `url`.
    ///
    /// # Errors
    ///
    /// As [`build_index`](Self::build_index); `Format` when the index is malformed, or says
    /// something else of a sample than the shard does; `Changed` when it is of another number of
    /// samples or another size; `Unsupported`, `Usage`, `Limit`.
    pub fn import_index(
        &self,
        url: Option<&OsStr>,
        format: IndexFormat,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        native::import_index(url, format.code(), path.as_ref().as_os_str(), &self.options()?)
    }

    fn options(&self) -> Result<native::Options> {
        native::Options::new(&self.settings, "dataset")
    }
}

impl Dataset {
    /// Options, for a dataset to be opened with them.
    pub fn builder() -> DatasetBuilder {
        DatasetBuilder::default()
    }

    /// Opens a dataset with every option at its default.
    ///
    /// # Errors
    ///
    /// As [`DatasetBuilder::open`].
    pub fn open<U>(urls: U) -> Result<Dataset>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        Self::builder().open(urls)
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.0.count() as usize
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A sample. Samples are numbered by the list of shards and the order in each.
    ///
    /// # Errors
    ///
    /// `Usage` (no such number); what a damaged shard can have; `Changed` and `Truncated` when the
    /// file is not the one that was opened; `Limit`; `Io`; `NoMemory`.
    pub fn get(&self, number: usize) -> Result<Sample> {
        self.0.get(number as u64).map(Sample)
    }

    /// Many samples, in the order asked for; read in the order of the files and by several threads
    /// (option `threads`) where that pays.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get): that of the first bad one in the list.
    pub fn get_many(&self, numbers: &[usize]) -> Result<Vec<Sample>> {
        let samples = self.0.get_many(&wide(numbers))?;
        Ok(samples.into_iter().map(Sample).collect())
    }

    /// A batch of these samples, at least one, decoded as the options `decode`, `ragged` and
    /// `missing` say.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get) and [`Stream::next_batch`](crate::Stream::next_batch).
    pub fn batch(&self, numbers: &[usize]) -> Result<Batch> {
        self.0.get_batch(&wide(numbers), None).map(Batch)
    }

    /// The same, made with the options of a builder instead of those of the dataset: `decode`,
    /// `ragged`, `missing`, `seed` and `epoch` among them. Samples by number have no epoch: with
    /// another one for each pass, images are cropped and flipped in another way.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// # let folder = std::env::temp_dir();
    /// let options = shardfeed::Dataset::builder().index_dir(folder).decode("cls:int");
    /// let data = options.clone().open(["train-{000..002}.tar"])?;
    /// for epoch in 0..2 {
    ///     let batch = data.batch_with(&[7, 5, 8], &options.clone().epoch(epoch))?;
    ///     assert_eq!(batch.len(), 3);
    /// }
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`batch`](Self::batch); `Usage` for bad options.
    pub fn batch_with(&self, numbers: &[usize], options: &DatasetBuilder) -> Result<Batch> {
        let options = native::Options::new(&options.settings, "dataset")?;
        self.0.get_batch(&wide(numbers), Some(&options)).map(Batch)
    }

    /// The number of the sample with this key. The first call makes a table of all keys.
    ///
    /// # Errors
    ///
    /// `NotFound`; `Ambiguous` when several samples have the key (the message says where).
    pub fn find(&self, key: impl AsRef<[u8]>) -> Result<usize> {
        self.0.find(key.as_ref()).map(|number| number as usize)
    }

    /// Which shard of the expanded list a sample is in, and its number in that shard.
    pub fn shard(&self, number: usize) -> Option<(usize, usize)> {
        let (shard, first) = self.0.shard(number as u64)?;
        Some((shard as usize, number - first as usize))
    }

    /// All samples, one after another. A [`Stream`](crate::Stream) reads ahead, and is faster.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Sample>> + '_ {
        (0..self.len()).map(|number| self.get(number))
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset").field("samples", &self.len()).finish_non_exhaustive()
    }
}

fn wide(numbers: &[usize]) -> Vec<u64> {
    numbers.iter().map(|&number| number as u64).collect()
}
