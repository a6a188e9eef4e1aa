//! What can go wrong.

use std::fmt;
use std::io;

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an [`Error`], the same in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes break the rules of the container or codec.
    Format,
    /// Input ended before its end was proven.
    Truncated,
    /// A checksum over data is wrong (that of a tar header is `Format`).
    Integrity,
    /// A bound set by an option was reached; the message names it.
    Limit,
    /// Valid, but not implemented or switched off.
    Unsupported,
    /// Conforming readers could see different contents.
    Ambiguous,
    /// The file became another version during the read.
    Changed,
    /// The retry budget was spent on a fault that may pass.
    NetTransient,
    /// The server's answer will not change.
    NetPermanent,
    /// The server asks for a longer pause than allowed.
    Throttled,
    /// Credentials missing, refused or expired.
    Auth,
    /// Certificate or host name refused.
    Tls,
    /// Operating-system error; [`Error::os_error`] says which.
    Io,
    /// Disk full or quota reached.
    NoSpace,
    /// An allocation failed.
    NoMemory,
    /// The stream was cancelled, or the function of `interrupt` ended the call.
    Cancelled,
    /// The time of the option `timeout` is over; the next call continues.
    Timeout,
    /// A child process failed.
    Child,
    /// Wrong call, refused URL, bad option.
    Usage,
    /// The object belongs to the parent process.
    Forked,
    /// No field, member or key of that name.
    NotFound,
    /// A bug in the library; please report the message.
    Internal,
}

impl ErrorKind {
    /// The kinds in the order of their codes, from -1 downward.
    const ALL: [ErrorKind; 22] = [
        ErrorKind::Format,
        ErrorKind::Truncated,
        ErrorKind::Integrity,
        ErrorKind::Limit,
        ErrorKind::Unsupported,
        ErrorKind::Ambiguous,
        ErrorKind::Changed,
        ErrorKind::NetTransient,
        ErrorKind::NetPermanent,
        ErrorKind::Throttled,
        ErrorKind::Auth,
        ErrorKind::Tls,
        ErrorKind::Io,
        ErrorKind::NoSpace,
        ErrorKind::NoMemory,
        ErrorKind::Cancelled,
        ErrorKind::Timeout,
        ErrorKind::Child,
        ErrorKind::Usage,
        ErrorKind::Forked,
        ErrorKind::NotFound,
        ErrorKind::Internal,
    ];

    /// A code that this crate does not know is one of a newer library: `Internal`.
    fn from_code(code: i32) -> ErrorKind {
        let place = code.checked_neg().and_then(|n| usize::try_from(n).ok());
        let kind = place.and_then(|n| n.checked_sub(1)).and_then(|n| Self::ALL.get(n));
        *kind.unwrap_or(&ErrorKind::Internal)
    }

    fn code(self) -> i32 {
        -(Self::ALL.iter().position(|&kind| kind == self).unwrap_or(21) as i32) - 1
    }

    /// The name of the class as in the C header: `"TRUNCATED"`.
    pub fn name(self) -> &'static str {
        crate::native::error_name(self.code())
    }
}

/// What went wrong, with the place.
///
/// The message names the shard (its URL without secrets), then member, byte offset and cause, and
/// after `help: ` what to do.
///
/// ```
/// let error = shardfeed::Stream::open(["/no/such.tar"]).unwrap().next().unwrap().unwrap_err();
/// assert_eq!(error.kind(), shardfeed::ErrorKind::Io);
/// assert_eq!(error.shard(), Some("/no/such.tar"));
/// assert_eq!(error.os_error(), Some(2));
///
/// // The error of the operating system, where there is one.
/// let source = std::error::Error::source(&error).unwrap();
/// let source: &std::io::Error = source.downcast_ref().unwrap();
/// assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Fault>);

#[derive(Clone, PartialEq, Eq)]
struct Fault {
    code: i32,
    system: Option<SystemError>,
    offset: Option<u64>,
    message: String,
}

/// What the operating system said: an [`io::Error`] made of its number, of which copies can be made.
struct SystemError(io::Error);

impl SystemError {
    fn new(number: i32) -> Option<SystemError> {
        (number != 0).then(|| SystemError(io::Error::from_raw_os_error(number)))
    }

    fn number(&self) -> i32 {
        self.0.raw_os_error().expect("made of a number")
    }
}

impl Clone for SystemError {
    fn clone(&self) -> SystemError {
        SystemError(io::Error::from_raw_os_error(self.number()))
    }
}

impl PartialEq for SystemError {
    fn eq(&self, other: &SystemError) -> bool {
        self.number() == other.number()
    }
}

impl Eq for SystemError {}

impl Error {
    pub(crate) fn new(code: i32, os_error: i32, offset: u64, message: String) -> Error {
        let offset = (offset != u64::MAX).then_some(offset);
        Error(Box::new(Fault { code, system: SystemError::new(os_error), offset, message }))
    }

    /// An error that this crate finds itself.
    pub(crate) fn of(kind: ErrorKind, message: String) -> Error {
        Error::new(kind.code(), 0, u64::MAX, message)
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::from_code(self.0.code)
    }

    /// The number of the class, as in the C header.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// The number that the operating system gave (`errno`), if it did. The source of the error is the
    /// [`io::Error`] of this number.
    pub fn os_error(&self) -> Option<i32> {
        self.0.system.as_ref().map(SystemError::number)
    }

    /// Where it happened: the byte position in the (decompressed) shard.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The whole message, help included.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&str> {
        self.0.message.split_once("; help: ").map(|(_, help)| help)
    }

    /// The shard, where the message separates it from the cause: it does with a member or an offset,
    /// and of what the operating system, a server or a child process said.
    pub fn shard(&self) -> Option<&str> {
        let message = self.message();
        let before = |mark: &str| message.find(mark).map(|at| &message[..at]);
        before(": member \"")
            .or_else(|| before(&format!(": at byte {}: ", self.offset()?)))
            .or_else(|| match self.kind() {
                ErrorKind::Io
                | ErrorKind::Child
                | ErrorKind::NetTransient
                | ErrorKind::NetPermanent
                | ErrorKind::Throttled
                | ErrorKind::Auth
                | ErrorKind::Tls => before(": "),
                _ => None,
            })
    }

    /// The member of the shard; what is not printable in its name is escaped.
    pub fn member(&self) -> Option<&str> {
        let (_, rest) = self.0.message.split_once("member \"")?;
        rest.split_once("\": ").map(|(member, _)| member)
    }

    /// Whether the same call continues: of all errors of a stream only a timeout does not end it.
    pub(crate) fn goes_on(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("os_error", &self.os_error())
            .field("offset", &self.offset())
            .field("message", &self.message())
            .finish()
    }
}

impl std::error::Error for Error {
    /// The [`io::Error`] of what the operating system said, where it said something.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.system.as_ref().map(|system| &system.0 as _)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.kind() {
            ErrorKind::Format | ErrorKind::Integrity | ErrorKind::Ambiguous => {
                io::ErrorKind::InvalidData
            }
            ErrorKind::Truncated => io::ErrorKind::UnexpectedEof,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::NoMemory => io::ErrorKind::OutOfMemory,
            ErrorKind::Timeout => io::ErrorKind::TimedOut,
            ErrorKind::Usage => io::ErrorKind::InvalidInput,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Auth => io::ErrorKind::PermissionDenied,
            _ => match error.os_error() {
                Some(number) => io::Error::from_raw_os_error(number).kind(),
                None => io::ErrorKind::Other,
            },
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32, offset: u64, message: &str) -> Error {
        Error::new(code, 0, offset, message.to_owned())
    }

    #[test]
    fn parts_of_the_message() {
        let text =
            "s3://b/a: b.tar: member \"x/1.jpg\": at byte 1536: size is cut; help: upload again";
        let whole = error(-2, 1536, text);
        assert_eq!(whole.kind(), ErrorKind::Truncated);
        assert_eq!(whole.shard(), Some("s3://b/a: b.tar"));
        assert_eq!(whole.member(), Some("x/1.jpg"));
        assert_eq!(whole.offset(), Some(1536));
        assert_eq!(whole.help(), Some("upload again"));
        assert_eq!(whole.to_string(), text);

        let no_member = error(-1, 512, "a.tar: at byte 512: no header");
        assert_eq!(no_member.shard(), Some("a.tar"));
        assert_eq!(no_member.member(), None);
        assert_eq!(no_member.help(), None);

        let option = error(-19, u64::MAX, "option shuffle: 0..10 expected");
        assert_eq!(option.shard(), None);
        assert_eq!(option.offset(), None);
        assert_eq!(error(-13, u64::MAX, "a.tar: open: no").shard(), Some("a.tar"));
    }

    #[test]
    fn every_code_has_its_kind() {
        for code in -22..0 {
            assert_eq!(ErrorKind::from_code(code).code(), code);
        }
        for unknown in [1, 0, -23, i32::MAX, i32::MIN] {
            assert_eq!(ErrorKind::from_code(unknown), ErrorKind::Internal);
        }
    }

    #[test]
    fn the_source_is_what_the_system_said() {
        use std::error::Error as _;
        let missing = Error::new(-13, 2, u64::MAX, "a: open".to_owned());
        for error in [missing.clone(), missing] {
            let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
            assert_eq!(source.raw_os_error(), Some(2));
            assert_eq!(error.os_error(), Some(2));
        }
        assert!(self::error(-1, 512, "a.tar: at byte 512: no header").source().is_none());
        assert_ne!(Error::new(-13, 2, 0, String::new()), Error::new(-13, 5, 0, String::new()));
    }

    #[test]
    fn becomes_an_io_error() {
        let missing = Error::new(-13, 2, u64::MAX, "a: open".to_owned());
        let converted = io::Error::from(missing.clone());
        assert_eq!(converted.kind(), io::ErrorKind::NotFound);
        let inner = converted.into_inner().unwrap();
        assert_eq!(*inner.downcast::<Error>().unwrap(), missing);
    }
}
