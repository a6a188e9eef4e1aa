//! Streams: the samples of many shards, one after another.

use std::ffi::OsStr;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::ControlFlow;

use crate::batch::Batch;
use crate::builder::{MixBuilder, StreamBuilder};
use crate::error::{Error, ErrorKind, Result};
use crate::name::Name;
use crate::native;
use crate::plan::Plan;
use crate::sample::{Block, Sample};
use crate::state::State;

/// The samples of many shards, one after another: an iterator.
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// for sample in shardfeed::Stream::builder().threads(8).shuffle(1000).open(&["train-{000..002}.tar"])? {
///     let sample = sample?;
///     let jpg: Option<&[u8]> = sample.get("jpg");
///     # assert!(jpg.is_some());
/// }
/// # Ok::<(), shardfeed::Error>(())
/// ```
///
/// **Errors.** An error ends the iterator, so that no loop goes round for ever: `None` comes after
/// it. Only [`Timeout`](crate::ErrorKind::Timeout) does not; the next call continues, with nothing
/// lost. [`next_block`](Self::next_block) repeats an error.
///
/// **Threads.** A stream may be sent to another thread, but serves one at a time: it is not
/// [`Sync`]. A [`Control`] cancels it from any thread. Samples go everywhere.
///
/// **Dropping** ends it: its threads stop, and its child processes (`pipe:`) are ended. Samples
/// and batches stay.
pub struct Stream {
    native: native::Stream,
    /// The block that was fetched last; its samples from `given` on are still to be given out.
    block: Option<native::Block>,
    given: usize,
    count: usize,
    /// A batch that was fetched and not given out, as the log function panicked meanwhile.
    batch: Option<native::Batch>,
    ended: bool,
}

impl StreamBuilder {
    /// Opens a stream over the shards that the URLs name: plans, but opens no shard and starts no
    /// thread.
    ///
    /// # Errors
    ///
    /// `Usage` (an option, a URL, fewer shards than consumers), `Io` (a list file), `Limit`,
    /// `NoMemory`.
    pub fn open<U>(&self, urls: U) -> Result<Stream>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        let options = native::Options::new(&self.settings, "stream")?;
        Ok(Stream::of(native::Stream::open(&native::Urls::new(urls)?, &options)?))
    }

    /// What each rank and worker of a run with these options would read, and what is wrong with
    /// that. Opens no shard.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), but that fewer shards than consumers are a warning.
    pub fn plan<U>(&self, urls: U) -> Result<Plan>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        let options = native::Options::new(&self.settings, "stream")?;
        native::Plan::make(&native::Urls::new(urls)?, &options).map(Plan)
    }

    /// A plan of shards that need not be there: `samples` has the number of each of them, and
    /// `bytes` their sizes, where these are to be known.
    ///
    /// ```
    /// let run = shardfeed::Stream::builder().world_size(8).shuffle_shards(true);
    /// let plan = run.simulate_plan(&[1000; 100], None)?;
    /// assert_eq!(plan.reads(7)?.len(), 12);
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Usage` (an option, no shard, a shard of 2^32 samples, slices of two lengths), `Limit`,
    /// `NoMemory`.
    pub fn simulate_plan(&self, samples: &[u64], bytes: Option<&[u64]>) -> Result<Plan> {
        if let Some(bytes) = bytes.filter(|bytes| bytes.len() != samples.len()) {
            let (samples, bytes) = (samples.len(), bytes.len());
            let message = format!("samples of {samples} shards, and bytes of {bytes}");
            return Err(Error::of(ErrorKind::Usage, message));
        }
        let options = native::Options::new(&self.settings, "stream")?;
        native::Plan::simulate(samples, bytes, &options).map(Plan)
    }

    /// Passes the URL of each shard to `each`, in the order of the list, until it breaks. Whether
    /// it did not.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// let mut urls = Vec::new();
    /// shardfeed::Stream::builder().expand_urls(["a-{08..11}.tar::b.tar"], |url| {
    ///     urls.push(url.to_string());
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(urls, ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar", "b.tar"]);
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Usage` (braces, environment, a refused pipe), `Io` (a list file), `Limit`.
    pub fn expand_urls<U>(
        &self,
        urls: U,
        mut each: impl FnMut(Name<'_>) -> ControlFlow<()>,
    ) -> Result<bool>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        let options = native::Options::new(&self.settings, "stream")?;
        let urls = native::Urls::new(urls)?;
        native::expand(&urls, &options, &mut |url| each(Name::new(url)))
    }

    /// Makes a batch of samples at hand, as the options `decode`, `ragged` and `missing` say.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// let stream = shardfeed::Stream::open(["train-000.tar"])?;
    /// let samples = stream.take(2).collect::<Result<Vec<_>, _>>()?;
    /// let batch = shardfeed::Stream::builder().decode("cls:int").make_batch(&samples)?;
    /// assert_eq!(batch.column("cls").unwrap().values::<i64>(), Some(&[0, 1][..]));
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Stream::next_batch`]: that of the first bad sample.
    pub fn make_batch<'a>(&self, samples: impl IntoIterator<Item = &'a Sample>) -> Result<Batch> {
        let options = native::Options::new(&self.settings, "stream")?;
        let samples: Vec<_> = samples.into_iter().map(|sample| &sample.0).collect();
        native::Batch::make(&samples, &options).map(Batch)
    }
}

impl MixBuilder {
    /// Opens a stream that takes its samples from others, its parts, at random by weight (above 0,
    /// in any unit). Which part a sample comes from depends on the option `seed` and the number of
    /// the sample alone. Each part delivers the samples that it would deliver by itself, in that
    /// order. Parts may be mixes and may have been restored, but nothing may have been taken from
    /// them. They keep their own options for reading; those of the mix are for what it makes of
    /// the samples.
    ///
    /// # Errors
    ///
    /// `Usage` (weights, a part that was used or has batches), `Forked`, `NoMemory`.
    pub fn open(&self, parts: impl IntoIterator<Item = (Stream, f64)>) -> Result<Stream> {
        let options = native::Options::new(&self.settings, "mix")?;
        let (parts, weights): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let parts = parts.into_iter().map(|part| part.native).collect();
        native::Stream::mix(parts, &weights, &options).map(Stream::of)
    }
}

impl Stream {
    /// Options, for a stream to be opened with them.
    pub fn builder() -> StreamBuilder {
        StreamBuilder::default()
    }

    /// Opens a stream with every option at its default.
    ///
    /// # Errors
    ///
    /// As [`StreamBuilder::open`].
    pub fn open<U>(urls: U) -> Result<Stream>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        Self::builder().open(urls)
    }

    /// Options of a stream that mixes others, for it to be opened with them.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// use shardfeed::Stream;
    ///
    /// let parts = [
    ///     (Stream::open(["train-000.tar"])?, 0.7),
    ///     (Stream::open(["train-{001..002}.tar"])?, 0.3),
    /// ];
    /// let mix = Stream::mix().seed(1).open(parts)?;
    /// assert_eq!(mix.count(), 9);
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    pub fn mix() -> MixBuilder {
        MixBuilder::default()
    }

    fn of(native: native::Stream) -> Stream {
        Stream { native, block: None, given: 0, count: 0, batch: None, ended: false }
    }

    /// The next samples, at least one and at most `max_samples` (0: as many as are convenient); `None`
    /// after the last one. How many come at once is not promised. It may be mixed with the
    /// iterator.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// let mut stream = shardfeed::Stream::open(["train-{000..002}.tar"])?;
    /// let mut bytes = 0;
    /// while let Some(block) = stream.next_block(0)? {
    ///     for sample in &block {
    ///         bytes += sample.values().map(<[u8]>::len).sum::<usize>();
    ///     }
    /// }
    /// # assert!(bytes > 0);
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Timeout` (call again), `Cancelled`, `Forked`, and any class that a damaged shard can have.
    pub fn next_block(&mut self, max_samples: usize) -> Result<Option<Block>> {
        if self.given == self.count {
            self.fetch(max_samples)?;
        }
        let (first, limit) = (self.given, self.count);
        if max_samples != 0 && limit - first > max_samples {
            // The iterator fetched more than is wanted now.
            self.given += max_samples;
            let block = self.block.as_ref().map(native::Block::own);
            return Ok(block.map(|block| Block::new(block, first..self.given)));
        }
        self.given = limit;
        Ok(self.block.take().map(|block| Block::new(block, first..limit)))
    }

    /// Fetches the next block; none at the end. Nothing is given out twice if this panics.
    fn fetch(&mut self, max_samples: usize) -> Result<()> {
        self.block = None;
        (self.given, self.count) = (0, 0);
        let result = self.native.next_block(max_samples).map(|block| {
            self.count = block.as_ref().map_or(0, native::Block::count);
            self.block = block;
        });
        self.native.resume_panic();
        result
    }

    /// The next batch of a stream with the option `batch`, which delivers nothing else; `None` after
    /// the last one.
    ///
    /// # Errors
    ///
    /// As [`next_block`](Self::next_block); `Format` (a field cannot be decoded, rows of unequal
    /// shape, a missing field), `Unsupported`, `Limit`, `Usage` (a bad option `decode`, or no
    /// option `batch`).
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        if self.batch.is_none() {
            let result = self.native.next_batch().map(|batch| self.batch = batch);
            self.native.resume_panic();
            result?;
        }
        Ok(self.batch.take().map(Batch))
    }

    /// The batches of a stream with the option `batch`, as an iterator; errors end it as they end
    /// that of samples.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// let mut stream = shardfeed::Stream::builder().batch(2).decode("cls:int").open(["train-{000..002}.tar"])?;
    /// for batch in stream.batches() {
    ///     let batch = batch?;
    ///     let labels: &[i64] = batch.column("cls").unwrap().values().unwrap();
    ///     # assert!(!labels.is_empty());
    /// }
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    pub fn batches(&mut self) -> Batches<'_> {
        Batches { stream: self }
    }

    /// The position of the user of the stream: a stream that is restored from it resumes with exactly
    /// the next sample or batch, shuffle buffers included. Reads nothing; the stream continues.
    ///
    /// All samples of a block of [`next_block`](Self::next_block) count as read.
    ///
    /// ```
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// let builder = shardfeed::Stream::builder().shuffle(1000);
    /// let mut stream = builder.open(["train-{000..002}.tar"])?;
    /// stream.next().unwrap()?;
    /// let state = stream.save()?;
    /// let mut other = builder.open(["train-{000..002}.tar"])?;
    /// other.restore(&state)?;
    /// assert_eq!(other.next().unwrap()?.key(), stream.next().unwrap()?.key());
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Forked`. A stream that has failed can still be saved: the fault comes again after a
    /// restore.
    pub fn save(&mut self) -> Result<State> {
        let unread = self.count - self.given + usize::from(self.batch.is_some());
        self.native.save(unread).map(State::new)
    }

    /// Makes a stream that was just opened resume where a state was saved: with the same shards and
    /// the same options but for threads, memory, time, checks and what is decoded. With a state of
    /// [`State::merge`] rank, world_size, worker and num_workers may be others, if lanes is the
    /// same.
    ///
    /// # Errors
    ///
    /// `Usage` when something was already taken, when shards or options changed (the message says
    /// which), or when the state lacks lanes of this stream; `Format`, `Integrity`, `Unsupported`
    /// for bytes that are no state of this version. The stream is then as it was.
    pub fn restore(&mut self, state: &State) -> Result<()> {
        self.native.restore(state.as_bytes())
    }

    /// What cancels the stream, and reads its counters, from any thread.
    pub fn control(&self) -> Control {
        Control(self.native.control().clone())
    }

    /// One counter, as [`Control::counter`].
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.control().counter(name)
    }
}

impl Iterator for Stream {
    type Item = Result<Sample>;

    #[inline]
    fn next(&mut self) -> Option<Result<Sample>> {
        if self.given == self.count {
            if self.ended {
                return None;
            }
            if let Err(error) = self.fetch(0) {
                self.ended = !error.goes_on();
                return Some(Err(error));
            }
            self.ended = self.block.is_none();
        }
        let sample = self.block.as_ref()?.sample(self.given)?;
        self.given += 1;
        Some(Ok(Sample(sample.own())))
    }
}

impl FusedIterator for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("samples", &self.counter("samples"))
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The batches of a [`Stream`].
#[derive(Debug)]
pub struct Batches<'a> {
    stream: &'a mut Stream,
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.stream.ended {
            return None;
        }
        let next = self.stream.next_batch();
        self.stream.ended = match &next {
            Ok(batch) => batch.is_none(),
            Err(error) => !error.goes_on(),
        };
        next.transpose()
    }
}

impl FusedIterator for Batches<'_> {}

/// Cancels a [`Stream`] and reads its counters, from any thread. Does not keep it open.
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// let mut stream = shardfeed::Stream::open(["train-{000..002}.tar"])?;
/// let control = stream.control();
/// std::thread::spawn(move || control.cancel()).join().unwrap();
/// let error = stream.next().unwrap().unwrap_err();
/// assert_eq!(error.kind(), shardfeed::ErrorKind::Cancelled);
/// # Ok::<(), shardfeed::Error>(())
/// ```
#[derive(Clone)]
pub struct Control(native::Control);

impl Control {
    /// Makes the stream's waiting and future calls fail with
    /// [`Cancelled`](crate::ErrorKind::Cancelled), within 100 ms. Does nothing once it is dropped.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// One counter: `"samples"`, `"bytes"`, `"skipped_samples"`, ... `None` when there is none of
    /// that name, and when the stream is dropped.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let (number, _) = counter_names().find(|&(_, known)| known == name)?;
        self.0.stat(number)
    }

    /// All counters with their names; none once the stream is dropped.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let values = counter_names().map(|(number, name)| Some((name, self.0.stat(number)?)));
        values.map_while(|counter| counter).collect()
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counters()).finish()
    }
}

/// Numbers and names of all counters. Those of skips by class start at 64.
fn counter_names() -> impl Iterator<Item = (i32, &'static str)> {
    (0..128).filter_map(|number| Some((number, native::stat_name(number)?)))
}
