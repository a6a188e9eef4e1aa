//! Messages of the library.

use std::fmt;
use std::sync::Arc;

/// How serious a message of the library is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something was left out or is not used: a sample or shard that `on_error` skips, an index.
    Warning,
    /// Something was done that takes its time, such as making an index.
    Info,
}

/// Who receives messages.
pub(crate) type Receiver = dyn Fn(LogLevel, &str) + Send + Sync;

/// Who receives messages, and which.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) level: LogLevel,
    pub(crate) receive: Arc<Receiver>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("level", &self.level).finish_non_exhaustive()
    }
}
