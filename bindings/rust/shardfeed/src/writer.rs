//! Writing shards: samples in, whole shards out.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::builder::WriterBuilder;
use crate::error::Result;
use crate::native::{self, sys};
use crate::sample::SampleRef;

/// Makes tar or ZIP shards of samples.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("shardfeed-writer-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # std::env::set_current_dir(&folder).unwrap();
/// use shardfeed::{Stream, Writer};
///
/// let mut writer = Writer::builder("train-%06d.tar").max_samples(1000).write_index(true).open()?;
/// for number in 0..2500 {
///     let image = vec![0; 100];
///     writer.write(format!("{number:06}"), [("jpg", &image[..]), ("cls", b"7")])?;
/// }
/// let shards = writer.finish()?; // nothing is published of the last shard without it
/// assert_eq!(shards[2].url, "train-000002.tar");
/// assert_eq!(shards.iter().map(|shard| shard.samples).collect::<Vec<_>>(), [1000, 1000, 500]);
///
/// let mut stream = Stream::open(["train-{000000..000002}.tar"])?;
/// assert_eq!(&stream.nth(1234).unwrap()?["cls"], b"7");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), shardfeed::Error>(())
/// ```
///
/// A shard appears under its name when it is whole, with its index, and not before; nothing is
/// overwritten, unless the option `overwrite` says so. The same samples make the same bytes, on
/// every machine and by any number of threads.
///
/// **Errors.** `Usage`, and the error of a file that was to become a field, costs its sample alone;
/// the next one can be written. After any other error all calls return it again.
///
/// **Threads.** A writer may be sent to another thread, but serves one at a time: it is not
/// [`Sync`]. A [`WriterControl`] cancels it from any thread. It belongs to the process that opened
/// it; in a forked child its calls are `Forked`.
///
/// **Dropping** it discards what is not published: only [`finish`](Self::finish) publishes the
/// last shard.
pub struct Writer {
    native: native::Writer,
    on_shard: Option<OnShard>,
    reported: u64, // shards that on_shard had
}

impl WriterBuilder {
    /// Opens a writer. Creates no file: a folder that is not there is the error of the first
    /// sample.
    ///
    /// # Errors
    ///
    /// `Usage` (the pattern, an option), `NoMemory`.
    pub fn open(&self) -> Result<Writer> {
        let options = native::Options::new(&self.settings, "writer")?;
        let pattern = self.settings.names.is_none().then_some(self.pattern.as_os_str());
        let native = native::Writer::open(pattern, options)?;
        Ok(Writer { native, on_shard: self.settings.on_shard.clone(), reported: 0 })
    }

    /// Makes a shard appear that a writer with the option `prepare` has made, in any process and on
    /// any machine. The options are those that the writer had; the pattern is not used.
    ///
    /// A shard that has appeared already stays as it is, so that this can be called again. Several
    /// threads can publish shards at once.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("shardfeed-token-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # std::env::set_current_dir(&folder).unwrap();
    /// let builder = shardfeed::Writer::builder("part-%03d.tar").prepare(true);
    /// let mut writer = builder.clone().open()?;
    /// writer.write("1", [("txt", "one")])?;
    /// let shards = writer.finish()?;
    /// assert!(!std::path::Path::new("part-000.tar").exists());
    /// builder.publish_prepared(shards[0].token.as_deref().unwrap())?;
    /// assert!(std::path::Path::new("part-000.tar").exists());
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Usage` (no token), `Io` (another shard has the name; it was discarded), and what a store
    /// says.
    pub fn publish_prepared(&self, token: &str) -> Result<()> {
        native::publish_prepared(token, &native::Options::new(&self.settings, "writer")?)
    }

    /// Removes what such a writer has made and what has not appeared.
    ///
    /// # Errors
    ///
    /// As [`publish_prepared`](Self::publish_prepared), without those of a name that is taken.
    pub fn discard_prepared(&self, token: &str) -> Result<()> {
        native::discard_prepared(token, &native::Options::new(&self.settings, "writer")?)
    }

    /// Removes all that writers have left in a store under names of this pattern that has not
    /// appeared, also of those that are at work. In this pattern there may be several numbers. See
    /// `shf_discard_left` in the header.
    ///
    /// # Errors
    ///
    /// As [`discard_prepared`](Self::discard_prepared); `Limit`.
    pub fn discard_left(&self) -> Result<()> {
        let options = native::Options::new(&self.settings, "writer")?;
        native::discard_left(&self.pattern, &options)
    }
}

impl Writer {
    /// Options, for a writer of these shards to be opened with them.
    ///
    /// `pattern` is a path, a `file://`, `s3://`, `gs://` or `az://` URL, `pipe:COMMAND`, or `-` for
    /// standard output, with at most one number of the shard, `%d` or `%06d`, and `%%` for a percent
    /// sign. The number is needed where
    /// `max_samples` or `max_bytes` is set. The end of the name says the format: `.tar`,
    /// `.tar.gz`, `.tar.zst`, `.tar.xz`, `.tar.lz4`, `.tar.bz2`, `.zip`.
    pub fn builder(pattern: impl Into<OsString>) -> WriterBuilder {
        WriterBuilder::of(pattern.into())
    }

    /// The same with a function that names the shards: it makes of a number what a pattern would.
    ///
    /// It is called once for each shard, on the thread that is in a call of the writer: for the
    /// first one when the writer is opened, for later ones when their first sample is written. A
    /// name that comes again is a `Usage` error. A panic in it costs the sample, and is carried to
    /// the caller; the next sample asks again.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("shardfeed-named-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # std::env::set_current_dir(&folder).unwrap();
    /// let days = ["monday", "tuesday"];
    /// let name = move |number: u64| format!("{}.tar", days[number as usize]);
    /// let builder = shardfeed::Writer::named(name).max_samples(1).on_shard(|shard| {
    ///     println!("{} is published", shard.url.to_string_lossy());
    /// });
    /// let mut writer = builder.open()?;
    /// writer.write("1", [("txt", "one")])?;
    /// writer.write("2", [("txt", "two")])?;
    /// assert_eq!(writer.finish()?[1].url, "tuesday.tar");
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    pub fn named<S: Into<OsString>>(name: impl FnMut(u64) -> S + Send + 'static) -> WriterBuilder {
        WriterBuilder::named(ShardNames::new(name))
    }

    /// Opens a writer with every option at its default: all samples go into one shard.
    ///
    /// # Errors
    ///
    /// As [`WriterBuilder::open`].
    pub fn open(pattern: impl Into<OsString>) -> Result<Writer> {
        Self::builder(pattern).open()
    }

    /// Writes a sample: its key, and names and bytes of its fields, in this order. Begins the next
    /// shard before it, when it does not fit into this one.
    ///
    /// # Errors
    ///
    /// `Usage` (a key or a name from which readers would make another one, no field, a key that the
    /// shard has), which costs this sample alone; `Io`, `NoSpace`, `NoMemory`, `Cancelled`,
    /// `Forked`.
    pub fn write<N, B>(
        &mut self,
        key: impl AsRef<[u8]>,
        fields: impl IntoIterator<Item = (N, B)>,
    ) -> Result<()>
    where
        N: AsRef<[u8]>,
        B: AsRef<[u8]>,
    {
        let mut sample = self.begin(key)?;
        for (name, bytes) in fields {
            sample.field(name, bytes)?;
        }
        sample.end()
    }

    /// Writes a sample of a stream, block or data set as it is, with all of its fields.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("shardfeed-resharded-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # std::env::set_current_dir("tests/data").unwrap();
    /// # let pattern = folder.join("shuffled.tar.zst");
    /// let mut writer = shardfeed::Writer::open(&pattern)?;
    /// for sample in shardfeed::Stream::builder().shuffle(1000).open(["train-{000..002}.tar"])? {
    ///     writer.write_sample(&sample?)?;
    /// }
    /// assert_eq!(writer.finish()?[0].samples, 9);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_sample<'a>(&mut self, sample: impl Into<SampleRef<'a>>) -> Result<()> {
        let result = self.native.write(sample.into().0);
        self.report();
        result
    }

    /// Writes a sample whose fields are the bytes of files: names and paths.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write), and [`NewSample::file`].
    pub fn write_files<N, P>(
        &mut self,
        key: impl AsRef<[u8]>,
        files: impl IntoIterator<Item = (N, P)>,
    ) -> Result<()>
    where
        N: AsRef<[u8]>,
        P: AsRef<Path>,
    {
        let mut sample = self.begin(key)?;
        for (name, path) in files {
            sample.file(name, path)?;
        }
        sample.end()
    }

    /// Begins a sample whose fields are added one after another; [`NewSample::end`] writes it.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("shardfeed-sample-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # std::env::set_current_dir(&folder).unwrap();
    /// # std::fs::write("cat.jpg", "an image").unwrap();
    /// let mut writer = shardfeed::Writer::open("cats.tar")?;
    /// let mut sample = writer.begin("0001")?;
    /// sample.file("jpg", "cat.jpg")?;
    /// sample.field("cls", 7.to_string())?;
    /// sample.end()?;
    /// assert_eq!(writer.finish()?[0].samples, 1);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), shardfeed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Usage` (the key), `Forked`, and what the writer has failed with.
    pub fn begin(&mut self, key: impl AsRef<[u8]>) -> Result<NewSample<'_>> {
        self.native.begin(key.as_ref())?;
        Ok(NewSample(self))
    }

    /// Ends the shard that is being written, if there is one: the next sample begins another one.
    /// A thread of the writer publishes it; [`shards`](Self::shards) says when.
    ///
    /// # Errors
    ///
    /// `Io`, `NoSpace`, `NoMemory`, `Cancelled`, `Forked`.
    pub fn next_shard(&mut self) -> Result<()> {
        let result = self.native.next_shard();
        self.report();
        result
    }

    /// Hands what was written so far to the system, and if `durable` to the disk: after a crash the
    /// samples are in the `.partial` file, whole, and all shards that were ended are published. A
    /// compressed shard gets a piece that ends here.
    ///
    /// # Errors
    ///
    /// `Io`, `NoSpace`, `NoMemory`, `Cancelled`, `Forked`.
    pub fn flush(&mut self, durable: bool) -> Result<()> {
        let result = self.native.flush(durable);
        self.report();
        result
    }

    /// Ends the last shard, and returns when all are published: which they are, in their order.
    /// Without samples there is none.
    ///
    /// # Errors
    ///
    /// `Io` ([`os_error`](crate::Error::os_error) `EEXIST`: a shard of that name appeared
    /// meanwhile), `NoSpace`, `NoMemory`, `Cancelled`, `Forked`. What was not published by then is
    /// discarded.
    pub fn finish(mut self) -> Result<Vec<Shard>> {
        let result = self.native.finish();
        self.report();
        result.map(|()| self.shards())
    }

    /// The shards that are published so far, in their order.
    pub fn shards(&self) -> Vec<Shard> {
        (0..self.native.shards()).map(|number| self.shard(number)).collect()
    }

    /// Passes on what was published meanwhile.
    fn report(&mut self) {
        let Some(on_shard) = self.on_shard.clone() else { return };
        while self.reported < self.native.shards() {
            self.reported += 1; // once, also when the function panics
            on_shard.receive(&self.shard(self.reported - 1));
        }
    }

    fn shard(&self, number: u64) -> Shard {
        let info = |what| self.native.shard_info(number, what);
        let text = |what| self.native.shard_text(number, what);
        Shard {
            url: OsString::from_vec(text(sys::SHF_SHARD_URL).unwrap_or_default()),
            samples: info(sys::SHF_SHARD_SAMPLES),
            bytes: info(sys::SHF_SHARD_BYTES),
            payload: info(sys::SHF_SHARD_PAYLOAD),
            digest: text(sys::SHF_SHARD_DIGEST)
                .map(|digits| digits.into_iter().map(char::from).collect())
                .unwrap_or_default(),
            index: text(sys::SHF_SHARD_INDEX).map(|path| PathBuf::from(OsString::from_vec(path))),
            token: text(sys::SHF_SHARD_TOKEN)
                .map(|lines| lines.into_iter().map(char::from).collect()),
        }
    }

    /// What cancels the writer from any thread.
    pub fn control(&self) -> WriterControl {
        WriterControl(self.native.control().clone())
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("shards", &self.native.shards()).finish_non_exhaustive()
    }
}

/// A sample of a [`Writer`] that is being made. It is dropped, and the shard is without it, unless
/// [`end`](Self::end) writes it.
#[must_use = "a sample is written by end()"]
pub struct NewSample<'a>(&'a mut Writer);

impl NewSample<'_> {
    /// Adds a field with these bytes, which are copied.
    ///
    /// # Errors
    ///
    /// `Usage` (the name, or the sample has it), `NoMemory`, `Forked`. The sample is then dropped;
    /// begin it again.
    pub fn field(&mut self, name: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.0.native.field(name.as_ref(), bytes.as_ref())
    }

    /// Adds the bytes of a regular file as a field. A large file is read by [`end`](Self::end).
    ///
    /// # Errors
    ///
    /// As [`field`](Self::field), `Usage` also for what is no regular file; `Io`, `Changed` (it
    /// was written to meanwhile).
    pub fn file(&mut self, name: impl AsRef<[u8]>, path: impl AsRef<Path>) -> Result<()> {
        self.0.native.field_file(name.as_ref(), path.as_ref().as_os_str())
    }

    /// Adds the bytes of what is at a URL as a field: of HTTP, of a store, or `pipe:COMMAND`.
    ///
    /// # Errors
    ///
    /// As [`field`](Self::field), `Limit` for more bytes than the option `memory` allows, and what
    /// reading a shard at that URL gives.
    pub fn url(&mut self, name: impl AsRef<[u8]>, url: impl AsRef<OsStr>) -> Result<()> {
        self.0.native.field_url(name.as_ref(), url.as_ref())
    }

    /// Writes the sample.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`]; that of a file which could not be read costs this sample alone.
    pub fn end(self) -> Result<()> {
        let result = self.0.native.end();
        self.0.report();
        result
    }
}

impl fmt::Debug for NewSample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSample").finish_non_exhaustive()
    }
}

/// A shard that a [`Writer`] has published.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shard {
    /// Its name, by the pattern.
    pub url: OsString,
    /// Samples in it.
    pub samples: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Bytes of all of its fields, before compression.
    pub payload: u64,
    /// XXH3-128 of its file, in 32 hexadecimal digits, as `xxh128sum` prints it.
    pub digest: String,
    /// The path of its index, if it has one.
    pub index: Option<PathBuf>,
    /// With the option `prepare`, for [`WriterBuilder::publish_prepared`]: it has not appeared.
    pub token: Option<String>,
}

/// What names shards: a function of the user.
#[derive(Clone)]
pub(crate) struct ShardNames(Arc<Mutex<dyn FnMut(u64) -> OsString + Send>>);

impl ShardNames {
    pub(crate) fn new<S: Into<OsString>>(
        mut name: impl FnMut(u64) -> S + Send + 'static,
    ) -> ShardNames {
        ShardNames(Arc::new(Mutex::new(move |number| name(number).into())))
    }

    pub(crate) fn name(&self, number: u64) -> OsString {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(number)
    }
}

impl fmt::Debug for ShardNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardNames").finish_non_exhaustive()
    }
}

/// Who receives shards that were published.
#[derive(Clone)]
pub(crate) struct OnShard(Arc<Mutex<ShardReceiver>>);

type ShardReceiver = dyn FnMut(&Shard) + Send;

impl OnShard {
    pub(crate) fn new(receive: impl FnMut(&Shard) + Send + 'static) -> OnShard {
        OnShard(Arc::new(Mutex::new(receive)))
    }

    fn receive(&self, shard: &Shard) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(shard);
    }
}

impl fmt::Debug for OnShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnShard").finish_non_exhaustive()
    }
}

/// Cancels a [`Writer`] from any thread. Does not keep it open.
///
/// ```
/// let mut writer = shardfeed::Writer::open("never.tar")?;
/// let control = writer.control();
/// std::thread::spawn(move || control.cancel()).join().unwrap();
/// let error = writer.finish().unwrap_err();
/// assert_eq!(error.kind(), shardfeed::ErrorKind::Cancelled);
/// # Ok::<(), shardfeed::Error>(())
/// ```
#[derive(Clone)]
pub struct WriterControl(native::WriterControl);

impl WriterControl {
    /// Makes what the writer waits for, and its future calls, fail with
    /// [`Cancelled`](crate::ErrorKind::Cancelled). Does nothing once it is dropped.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl fmt::Debug for WriterControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterControl").finish_non_exhaustive()
    }
}
