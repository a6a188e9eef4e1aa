//! Options by name. Their methods are in `options.rs`, which is made from the library's table.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::log::{Log, LogLevel};
use crate::skip::{OnSkip, Skip};
use crate::source::{Served, Source};
use crate::tokenizer::Tokenizer;
use crate::writer::{OnShard, Shard, ShardNames};

/// A number of bytes: a number, or a text such as `"256MiB"`.
///
/// ```
/// # use shardfeed::Stream;
/// Stream::builder().memory(64 << 20);
/// Stream::builder().memory("64MiB");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size(String);

impl From<u64> for Size {
    fn from(bytes: u64) -> Size {
        Size(bytes.to_string())
    }
}

impl From<&str> for Size {
    fn from(text: &str) -> Size {
        Size(text.to_owned())
    }
}

/// The value of an option, as the library takes it.
pub(crate) trait Value {
    fn text(self) -> OsString;
}

impl Value for u64 {
    fn text(self) -> OsString {
        self.to_string().into()
    }
}

impl Value for bool {
    fn text(self) -> OsString {
        if self { "true" } else { "false" }.into()
    }
}

impl Value for Size {
    fn text(self) -> OsString {
        self.0.into()
    }
}

impl Value for Duration {
    fn text(self) -> OsString {
        format!("{}ns", self.as_nanos()).into()
    }
}

impl Value for &str {
    fn text(self) -> OsString {
        self.into()
    }
}

impl Value for &OsStr {
    fn text(self) -> OsString {
        self.into()
    }
}

/// What was set on a builder.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) options: Vec<(String, OsString)>,
    pub(crate) log: Option<Log>,
    pub(crate) on_skip: Option<OnSkip>,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) sources: Vec<Served>,
    pub(crate) tokenizer: Option<Tokenizer>,
    pub(crate) names: Option<ShardNames>,
    pub(crate) on_shard: Option<OnShard>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = crate::options();
        let is_secret = |name: &str| {
            table.iter().any(|option| option.name == name && option.value_type == "secret")
        };
        let shown: Vec<_> = self
            .options
            .iter()
            .map(|(name, value)| match is_secret(name) {
                true => (name, OsStr::new("...")),
                false => (name, value.as_os_str()),
            })
            .collect();
        f.debug_struct("Settings")
            .field("options", &shown)
            .field("log", &self.log)
            .field("on_skip", &self.on_skip)
            .field("interrupt", &self.interrupt)
            .field("tokenizer", &self.tokenizer)
            .finish()
    }
}

macro_rules! builder {
    ($(#[$doc:meta])* $name:ident $($place:ident)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $name {
            $(pub(crate) $place: OsString,)?
            pub(crate) settings: Settings,
        }

        impl $name {
            /// Sets an option by name; the value is a text as in the table of options.
            ///
            /// The methods of the same names are checked by the compiler. This is for names that
            /// come from a file or a command line: opening fails with [`ErrorKind::Usage`] for a
            /// name that there is not, with the nearest one in the message.
            ///
            /// [`ErrorKind::Usage`]: crate::ErrorKind::Usage
            pub fn set(self, name: impl Into<String>, value: impl AsRef<OsStr>) -> Self {
                self.with(name, value.as_ref())
            }

            /// Sets who receives messages of `level` and more serious ones. Without, nothing is
            /// said.
            ///
            /// It is called on the thread that is in a call of this crate. A panic in it is
            /// carried to the caller of that call. No sample is lost; the messages and skips that
            /// come later in the same call are dropped.
            pub fn log(
                mut self,
                level: LogLevel,
                receive: impl Fn(LogLevel, &str) + Send + Sync + 'static,
            ) -> Self {
                let receive = Arc::new(receive);
                self.settings.log = Some(Log { level, receive });
                self
            }

            pub(crate) fn with(mut self, name: impl Into<String>, value: impl Value) -> Self {
                self.settings.options.push((name.into(), value.text()));
                self
            }
        }
    };
}

builder! {
    /// Options of a [`Stream`](crate::Stream), made by [`Stream::builder`](crate::Stream::builder).
    ///
    /// Values are checked when the stream is opened. A builder may open any number of them.
    #[derive(Default)]
    StreamBuilder
}

builder! {
    /// Options of a stream that mixes others, made by [`Stream::mix`](crate::Stream::mix).
    #[derive(Default)]
    MixBuilder
}

builder! {
    /// Options of an [`Archive`](crate::Archive), made by
    /// [`Archive::builder`](crate::Archive::builder).
    #[derive(Default)]
    ArchiveBuilder
}

builder! {
    /// Options of a [`Dataset`](crate::Dataset), made by
    /// [`Dataset::builder`](crate::Dataset::builder).
    #[derive(Default)]
    DatasetBuilder
}

builder! {
    /// Options of a [`Writer`](crate::Writer), made by [`Writer::builder`](crate::Writer::builder).
    WriterBuilder pattern
}

impl WriterBuilder {
    pub(crate) fn of(pattern: OsString) -> WriterBuilder {
        WriterBuilder { pattern, settings: Settings::default() }
    }

    pub(crate) fn named(names: ShardNames) -> WriterBuilder {
        let settings = Settings { names: Some(names), ..Settings::default() };
        WriterBuilder { pattern: OsString::new(), settings }
    }

    /// Sets who receives each shard that was published.
    ///
    /// It is called on the thread that is in a call of the writer, at the end of one that comes
    /// after: for the last shards in [`Writer::finish`](crate::Writer::finish).
    pub fn on_shard(mut self, receive: impl FnMut(&Shard) + Send + 'static) -> Self {
        self.settings.on_shard = Some(OnShard::new(receive));
        self
    }
}

macro_rules! skipping {
    ($($name:ident)*) => {
        $(impl $name {
            /// Sets who receives each sample and shard that is skipped under `on_error`: for a list
            /// of what to repair.
            ///
            /// It is called on the thread that is in a call of this crate. A panic in it is
            /// carried to the caller of that call. No sample is lost; the messages and skips that
            /// come later in the same call are dropped.
            pub fn on_skip(mut self, receive: impl Fn(&Skip<'_>) + Send + Sync + 'static) -> Self {
                self.settings.on_skip = Some(OnSkip(Arc::new(receive)));
                self
            }
        })*
    };
}

skipping! { StreamBuilder MixBuilder }

macro_rules! tokenizing {
    ($($name:ident)*) => {
        $(impl $name {
            /// Sets a function that makes tokens of texts. With the option [`pack`](Self::pack)
            /// columns of `decode` may then be text, as `"txt"`, whose tokens are packed in rows
            /// of one length. It appends the tokens of a text to an empty list.
            ///
            /// It is called by decode threads of the library, several at once, ahead of the
            /// consumer. The tokens of a text must be the same each time: a saved stream may begin
            /// in the middle of them. An error becomes the error of the sample, with its text, of
            /// the class [`Format`], which `on_error` may skip; an [`io::Error`] of the kind
            /// `OutOfMemory` is of the class `NoMemory`. A panic becomes an error of the class
            /// `Usage`, which is not skipped. The library cannot interrupt the function: a stream
            /// is closed when it returns.
            ///
            /// ```
            /// # use shardfeed::Stream;
            /// let words = |text: &str, tokens: &mut Vec<i32>| {
            ///     for word in text.split_whitespace() {
            ///         tokens.push(word.parse()?);
            ///     }
            ///     Ok::<_, std::num::ParseIntError>(())
            /// };
            /// Stream::builder().batch(8).decode("txt").pack(4096).tokenizer(words);
            /// ```
            ///
            /// [`Format`]: crate::ErrorKind::Format
            /// [`io::Error`]: std::io::Error
            pub fn tokenizer<E>(
                mut self,
                tokenize: impl Fn(&str, &mut Vec<i32>) -> Result<(), E> + Send + Sync + 'static,
            ) -> Self
            where
                E: Into<Box<dyn Error + Send + Sync>>,
            {
                let tokenize = Arc::new(move |text: &str, tokens: &mut Vec<i32>| {
                    tokenize(text, tokens).map_err(Into::into)
                });
                self.settings.tokenizer = Some(Tokenizer(tokenize));
                self
            }
        })*
    };
}

tokenizing! { StreamBuilder MixBuilder }

// A mix waits for nothing when it is opened.
macro_rules! interruptible {
    ($($name:ident)*) => {
        $(impl $name {
            /// Sets a function that ends a call which opens something, or expands URLs, when it
            /// returns `true`. Such a call has nothing yet that could be cancelled. It fails with
            /// [`ErrorKind::Cancelled`], at most 100 ms later; a command of `pipe:` that it has
            /// started is ended.
            ///
            /// The function is called about every 50 ms, on the thread that is in the call, and no
            /// more once something is open, except by [`Members`](crate::Members) and a
            /// [`Writer`](crate::Writer), which call it as long as they are open. It may call this
            /// crate. Clones of the builder share it: while one thread is in it, another one
            /// continues and calls it later. A panic in it ends the call too, and is carried to its
            /// caller.
            ///
            /// The option `timeout` ends these calls by itself. When this function is set,
            /// `timeout` does not bound the opening of a stream or of members. A program that
            /// waits in short steps can then still open them.
            ///
            /// ```
            /// use shardfeed::{Archive, ErrorKind};
            /// use std::sync::atomic::{AtomicBool, Ordering};
            ///
            /// static STOP: AtomicBool = AtomicBool::new(false); // set by a signal handler
            /// # STOP.store(true, Ordering::Relaxed);
            ///
            /// let builder = Archive::builder().interrupt(|| STOP.load(Ordering::Relaxed));
            /// let error = builder.open("pipe:sleep 1000").unwrap_err();
            /// assert_eq!(error.kind(), ErrorKind::Cancelled);
            /// ```
            ///
            /// [`ErrorKind::Cancelled`]: crate::ErrorKind::Cancelled
            pub fn interrupt(
                mut self,
                is_stopped: impl FnMut() -> bool + Send + 'static,
            ) -> Self {
                self.settings.interrupt = Some(Interrupt::new(is_stopped));
                self
            }
        })*
    };
}

interruptible! { StreamBuilder ArchiveBuilder DatasetBuilder WriterBuilder }

// The parts of a mix have their own.
macro_rules! sourced {
    ($($name:ident)*) => {
        $(impl $name {
            /// Serves the URLs of `scheme` by a [`Source`]: `"db"` for `db://...`. `"*"` is any
            /// scheme without a source of its own.
            ///
            /// A source comes before what the library itself serves, as `http`. Paths, `file:`,
            /// `pipe:` and `-` cannot be served so; opening then fails with [`ErrorKind::Usage`].
            ///
            /// [`ErrorKind::Usage`]: crate::ErrorKind::Usage
            pub fn source(
                mut self,
                scheme: impl Into<String>,
                source: impl Source + 'static,
            ) -> Self {
                let source = Arc::new(source);
                self.settings.sources.push(Served { scheme: scheme.into(), source });
                self
            }
        })*
    };
}

sourced! { StreamBuilder ArchiveBuilder DatasetBuilder }

/// What an option is: one row of the library's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// `"shuffle"`
    pub name: &'static str,
    /// `"bool"`, `"count"`, `"bytes"`, `"duration"`, `"choice"` or `"text"`
    pub value_type: &'static str,
    /// The value when it is not set.
    pub default: &'static str,
    /// `"0..4096"`, or the choices: `"raise|skip_sample|skip_shard"`
    pub range: &'static str,
    /// Who takes it: some of `"stream mix archive dataset writer"`.
    pub openers: &'static str,
    /// One line.
    pub help: &'static str,
    /// What it belongs to: `"order"`, `"limits"`, ...
    pub group: &'static str,
}

/// All options of the library that runs.
///
/// ```
/// let options = shardfeed::options();
/// let shuffle = options.iter().find(|option| option.name == "shuffle").unwrap();
/// assert_eq!((shuffle.value_type, shuffle.default), ("count", "0"));
/// ```
pub fn options() -> Vec<OptionInfo> {
    (0..).map_while(crate::native::option_info).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_texts_that_the_library_takes() {
        let builder = StreamBuilder::default()
            .with("threads", 8)
            .with("resample", true)
            .with("memory", Size::from(1 << 20))
            .with("timeout", Duration::from_millis(1500))
            .set("fields", "jpg,cls");
        let texts: Vec<_> =
            builder.settings.options.iter().map(|(_, text)| text.to_str()).collect();
        let wanted = ["8", "true", "1048576", "1500000000ns", "jpg,cls"];
        assert_eq!(texts, wanted.map(Some));
    }
}
