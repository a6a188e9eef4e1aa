//! Samples: a key and named bytes.

use std::fmt;
use std::ops::Index;

use crate::name::Name;
use crate::native::{self, sys};

/// A sample: a key and named byte fields.
///
/// The bytes live as long as the sample, and a sample outlives its stream. It may be sent to other
/// threads and shared between them; a clone is another reference to the same bytes.
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// let sample = shardfeed::Stream::open(["train-000.tar"])?.next().unwrap()?;
/// assert_eq!(sample.key(), "a/0000");
/// let jpg: Option<&[u8]> = sample.get("jpg");
/// let cls: &[u8] = &sample["cls"]; // panics without such a field
/// for (name, bytes) in sample.fields() {
///     println!("{name}: {} bytes", bytes.len());
/// }
/// # assert!(jpg.is_some() && cls == b"0" && sample.len() == 3);
/// # Ok::<(), shardfeed::Error>(())
/// ```
pub struct Sample(pub(crate) native::Sample);

/// A sample that a [`Block`] lends: a [`Sample`] without a reference of its own.
#[derive(Clone, Copy)]
pub struct SampleRef<'a>(pub(crate) native::SampleRef<'a>);

impl<'a> SampleRef<'a> {
    /// The key.
    #[inline]
    pub fn key(self) -> Name<'a> {
        Name::new(self.0.key())
    }

    /// The URL of the shard, without secrets.
    #[inline]
    pub fn shard(self) -> Name<'a> {
        Name::new(self.0.url())
    }

    /// The bytes of the field of this name (lower case), such as `"jpg"` or `"seg.png"`.
    #[inline]
    pub fn get(self, name: impl AsRef<[u8]>) -> Option<&'a [u8]> {
        self.0.find(name.as_ref())
    }

    /// The fields, in the order of the shard.
    #[inline]
    pub fn fields(self) -> Fields<'a> {
        Fields { sample: self, places: 0..self.0.count() }
    }

    /// The bytes of the fields without their names, in the order of the shard.
    #[inline]
    pub fn values(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        (0..self.0.count()).map(move |place| self.0.data(place).unwrap_or_default())
    }

    /// The number of fields.
    #[inline]
    pub fn len(self) -> usize {
        self.0.count()
    }

    /// Whether there is no field, as with the option `fields` of a dataset.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where the sample came from.
    pub fn position(self) -> Position {
        let position = |what| self.0.position(what);
        Position {
            epoch: position(sys::SHF_SAMPLE_EPOCH),
            lane: position(sys::SHF_SAMPLE_LANE),
            shard: position(sys::SHF_SAMPLE_SHARD),
            offset: position(sys::SHF_SAMPLE_OFFSET),
            part: position(sys::SHF_SAMPLE_PART),
        }
    }

    /// A sample with a reference of its own, which outlives the block.
    #[inline]
    pub fn to_owned(self) -> Sample {
        Sample(self.0.own())
    }
}

impl Sample {
    /// This sample, lent.
    #[inline]
    pub fn borrow(&self) -> SampleRef<'_> {
        SampleRef(self.0.borrow())
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> Name<'_> {
        self.borrow().key()
    }

    /// The URL of the shard, without secrets.
    #[inline]
    pub fn shard(&self) -> Name<'_> {
        self.borrow().shard()
    }

    /// The bytes of the field of this name (lower case), such as `"jpg"` or `"seg.png"`.
    #[inline]
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.borrow().get(name)
    }

    /// The fields, in the order of the shard.
    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        self.borrow().fields()
    }

    /// The bytes of the fields without their names, in the order of the shard.
    #[inline]
    pub fn values(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.borrow().values()
    }

    /// The number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.borrow().len()
    }

    /// Whether there is no field, as with the option `fields` of a dataset.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.borrow().is_empty()
    }

    /// Where the sample came from.
    pub fn position(&self) -> Position {
        self.borrow().position()
    }
}

/// The bytes of a field that has to be there.
impl Index<&str> for SampleRef<'_> {
    type Output = [u8];

    /// # Panics
    ///
    /// When the sample has no field of this name; the message lists those that it has.
    #[inline]
    #[track_caller]
    fn index(&self, name: &str) -> &[u8] {
        match self.get(name) {
            Some(bytes) => bytes,
            None => no_field(*self, name),
        }
    }
}

/// The bytes of a field that has to be there.
impl Index<&str> for Sample {
    type Output = [u8];

    /// # Panics
    ///
    /// When the sample has no field of this name; the message lists those that it has.
    #[inline]
    #[track_caller]
    fn index(&self, name: &str) -> &[u8] {
        match self.get(name) {
            Some(bytes) => bytes,
            None => no_field(self.borrow(), name),
        }
    }
}

#[cold]
#[track_caller]
fn no_field(sample: SampleRef<'_>, name: &str) -> ! {
    let names: Vec<_> = sample.fields().map(|(name, _)| name.to_string()).collect();
    let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    panic!("sample \"{}\" has no field {name:?}; its fields: {has}", sample.key())
}

impl<'a> From<&'a Sample> for SampleRef<'a> {
    fn from(sample: &'a Sample) -> SampleRef<'a> {
        sample.borrow()
    }
}

impl Clone for Sample {
    fn clone(&self) -> Self {
        self.borrow().to_owned()
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.borrow(), f)
    }
}

impl fmt::Debug for SampleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.fields().map(|(name, bytes)| (name, bytes.len()));
        f.debug_struct("Sample")
            .field("key", &self.key())
            .field("shard", &self.shard())
            .field("sizes", &sizes.collect::<Vec<_>>())
            .finish()
    }
}

/// The fields of a sample: names and bytes.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    sample: SampleRef<'a>,
    places: std::ops::Range<usize>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Name<'a>, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, bytes) = self.sample.0.field(self.places.next()?)?;
        Some((Name::new(name), bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// Where a sample came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Position {
    /// The pass over the shards, numbered from the option `epoch` upward.
    pub epoch: u64,
    /// The lane that it came through.
    pub lane: u64,
    /// The number of the shard in the expanded list.
    pub shard: u64,
    /// Of its first header in the (decompressed) shard, bytes.
    pub offset: u64,
    /// The stream of a mix, those of nested mixes counted through; else 0.
    pub part: u64,
}

/// Some samples that came with one call: the quickest way through tiny ones.
///
/// A kept block holds at most 64 KiB more than 8 times the smallest sample in it. It is read-only:
/// any number of threads may use it.
pub struct Block {
    native: native::Block,
    places: std::ops::Range<usize>,
}

impl Block {
    /// The samples of `native` in `places`.
    pub(crate) fn new(native: native::Block, places: std::ops::Range<usize>) -> Block {
        Block { native, places }
    }

    /// The number of samples, at least one.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// One of the samples.
    pub fn get(&self, index: usize) -> Option<SampleRef<'_>> {
        let place = self.places.clone().nth(index)?;
        self.native.sample(place).map(SampleRef)
    }

    /// The samples, in their order.
    #[inline]
    pub fn iter(&self) -> Samples<'_> {
        Samples { block: &self.native, places: self.places.clone() }
    }
}

impl<'a> IntoIterator for &'a Block {
    type Item = SampleRef<'a>;
    type IntoIter = Samples<'a>;

    fn into_iter(self) -> Samples<'a> {
        self.iter()
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// The samples of a [`Block`].
#[derive(Clone)]
pub struct Samples<'a> {
    block: &'a native::Block,
    places: std::ops::Range<usize>,
}

impl<'a> Iterator for Samples<'a> {
    type Item = SampleRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<SampleRef<'a>> {
        self.block.sample(self.places.next()?).map(SampleRef)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl ExactSizeIterator for Samples<'_> {}

impl fmt::Debug for Samples<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
