//! Bytes that are text as a rule.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::str::Utf8Error;

/// A key, a URL, or the name of a field, member or column: bytes, which are UTF-8 as a rule but do
/// not have to be.
///
/// ```
/// let name = shardfeed::Name::new(b"a/0001");
/// assert_eq!(name, "a/0001");
/// assert_eq!(name.to_str(), Ok("a/0001"));
/// assert_eq!(format!("{name}"), "a/0001");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// These bytes as a name.
    pub fn new(bytes: &'a [u8]) -> Self {
        Name(bytes)
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The name as text, or why it is none.
    pub fn to_str(self) -> Result<&'a str, Utf8Error> {
        std::str::from_utf8(self.0)
    }

    /// The name as text, with U+FFFD for what is not UTF-8.
    pub fn to_string_lossy(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// The name as part of a path.
    pub fn to_os_str(self) -> &'a OsStr {
        OsStr::from_bytes(self.0)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_string_lossy(), f)
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl AsRef<[u8]> for Name<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(text: &'a str) -> Self {
        Name(text.as_bytes())
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Name<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<[u8]> for Name<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        self.0 == other
    }
}

impl PartialEq<Name<'_>> for &str {
    fn eq(&self, other: &Name<'_>) -> bool {
        self.as_bytes() == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_utf8_stays_as_it_is() {
        let name = Name::new(b"a\xff\"");
        assert_eq!(name.as_bytes(), b"a\xff\"");
        assert!(name.to_str().is_err());
        assert_eq!(name.to_string(), "a\u{fffd}\"");
        assert_eq!(format!("{name:?}"), "\"a\\xff\\\"\"");
        assert!(name != "a" && name == *b"a\xff\"".as_slice());
        assert_eq!(format!("{:>5}|", Name::from("ab")), "   ab|");
    }
}
