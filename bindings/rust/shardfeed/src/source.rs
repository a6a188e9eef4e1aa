//! What a program serves the URLs of a scheme with.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A store that the library does not know: gives an object for each URL of a scheme.
///
/// It is called by threads of the library, several at once. The library cannot interrupt it: a
/// stream is cancelled or closed when the call returns, so that it should have a time limit of its
/// own. An error becomes the error of the shard, with its text: `UnexpectedEof` is of the class
/// [`Truncated`], `OutOfMemory` of `NoMemory`, `InvalidInput` and `Unsupported` of `Usage`, which
/// `on_error` does not skip, and others of [`Io`]. So does a panic, of the class `Usage`. A forked
/// child opens the URLs of an archive or a dataset again.
///
/// A function that takes a URL is one:
///
/// ```
/// use shardfeed::{SourceObject, Stream};
/// use std::io;
///
/// let tar: &'static [u8] = &[0; 1024]; // from where you keep them
/// let open = move |url: &str| -> io::Result<Box<dyn SourceObject>> {
///     assert_eq!(url, "db://train-000.tar");
///     Ok(Box::new(tar))
/// };
/// let stream = Stream::builder().source("db", open).allow_empty(true).open(&["db://train-000.tar"])?;
/// assert_eq!(stream.count(), 0);
/// # Ok::<(), shardfeed::Error>(())
/// ```
///
/// [`Truncated`]: crate::ErrorKind::Truncated
/// [`Io`]: crate::ErrorKind::Io
pub trait Source: Send + Sync {
    /// Opens a URL, as it is after expansion.
    ///
    /// # Errors
    ///
    /// What the program likes: see the [trait](Source).
    fn open(&self, url: &str) -> io::Result<Box<dyn SourceObject>>;
}

impl<F> Source for F
where
    F: Fn(&str) -> io::Result<Box<dyn SourceObject>> + Send + Sync,
{
    fn open(&self, url: &str) -> io::Result<Box<dyn SourceObject>> {
        self(url)
    }
}

/// One object of a [`Source`]. It is dropped when nothing reads it any more, by the process that
/// opened it.
pub trait SourceObject: Send + Sync {
    /// Its size in bytes, if that is known. Asked once. An object without one is read as one that
    /// [is sequential](Self::is_sequential).
    fn size(&self) -> Option<u64>;

    /// A text that differs for other contents at the URL, such as an ETag, of at most 255 bytes. It
    /// guards saved states and shards that are opened again. Asked once.
    fn version(&self) -> String {
        String::new()
    }

    /// Whether it is read once, from front to back: `offset` is then where the last call ended.
    /// Such objects are no shards of a [`Dataset`](crate::Dataset). Asked once.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Reads some bytes at `offset` into the start of `out`, which is not empty. Returns how many,
    /// 0 only at the end. Several threads may be in it at once.
    ///
    /// # Errors
    ///
    /// What the program likes: see [`Source`].
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
}

macro_rules! bytes {
    ($($type:ty)*) => {
        $(impl SourceObject for $type {
            fn size(&self) -> Option<u64> {
                Some(self.len() as u64)
            }

            fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
                let count = out.len().min(self.len() - start);
                out[..count].copy_from_slice(&self[start..start + count]);
                Ok(count)
            }
        })*
    };
}

bytes! { Vec<u8> Arc<[u8]> &'static [u8] }

/// A source and its scheme, as a builder keeps it.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) scheme: String,
    pub(crate) source: Arc<dyn Source>,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
