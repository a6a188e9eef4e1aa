//! Members in sequence: all of one tar or ZIP file, from front to back.

use std::ffi::OsStr;
use std::fmt;
use std::io;

use crate::archive::MemberKind;
use crate::builder::ArchiveBuilder;
use crate::error::Result;
use crate::name::Name;
use crate::native::{self, sys};

/// The members of one tar or ZIP file from front to back: all of them, duplicates, directories,
/// links and devices too, names exactly as they are. Nothing is grouped or left out.
///
/// A member may be of any size: memory does not grow with it. A ZIP file that cannot be read at any
/// offset, as from a pipe, is taken into memory, as far as the option `memory` allows.
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// use std::io::Read;
///
/// let mut members = shardfeed::Members::open("images.zip")?;
/// # let mut count = 0;
/// while let Some(mut member) = members.next_member()? {
///     println!("{}: {} bytes, mode {:o}", member.name(), member.size(), member.mode().unwrap_or(0));
///     let mut bytes = Vec::new();
///     member.read_to_end(&mut bytes).unwrap();
///     # assert_eq!(&bytes[1..4], b"PNG");
///     # count += 1;
/// }
/// # assert_eq!(count, 3);
/// # Ok::<(), shardfeed::Error>(())
/// ```
///
/// After a `Timeout`, or `Cancelled` by the interrupt function, the same call continues and no byte
/// is lost. Every other error repeats; what is wrong with the data of one entry of a ZIP file
/// repeats until the next member.
pub struct Members(native::Members);

impl ArchiveBuilder {
    /// Opens the members of the file at a URL (a path, `file:`, `-`, `pipe:`; not expanded) in
    /// sequence. Reads nothing: what is wrong with its bytes is said by
    /// [`Members::next_member`]. The options `threads` and `max_member` mean nothing here.
    ///
    /// # Errors
    ///
    /// `Io`, `Usage` (URL, refused pipe, standard input is in use), `Timeout`, `Cancelled`,
    /// `NoMemory`.
    pub fn open_members(&self, url: impl AsRef<OsStr>) -> Result<Members> {
        let options = native::Options::new(&self.settings, "archive")?;
        native::Members::open(url.as_ref(), options).map(Members)
    }
}

impl Members {
    /// Options, those of an archive; [`open_members`](ArchiveBuilder::open_members) takes them.
    pub fn builder() -> ArchiveBuilder {
        ArchiveBuilder::default()
    }

    /// Opens the members of a file with every option at its default.
    ///
    /// # Errors
    ///
    /// As [`ArchiveBuilder::open_members`].
    pub fn open(url: impl AsRef<OsStr>) -> Result<Members> {
        Self::builder().open_members(url)
    }

    /// The next member, behind what was not read of the one before; none after the last one, when
    /// the end of the file is proven.
    ///
    /// # Errors
    ///
    /// `Format`, `Truncated`, `Integrity`, `Ambiguous`, `Unsupported` (the file, or headers of
    /// members), `Changed`, `Limit`, `Io`, `Child`; `Timeout` (call again), `Cancelled`, `Forked`,
    /// `NoMemory`.
    pub fn next_member(&mut self) -> Result<Option<CurrentMember<'_>>> {
        Ok(self.0.next()?.then_some(CurrentMember(&mut self.0)))
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").finish_non_exhaustive()
    }
}

/// The current member of [`Members`]. Its bytes come with [`io::Read`], whose errors hold a
/// [`crate::Error`]; the end of them is reported when all checks have held.
pub struct CurrentMember<'a>(&'a mut native::Members);

impl CurrentMember<'_> {
    fn known(&self, what: i32) -> Option<u64> {
        Some(self.0.info(what)).filter(|&number| number != u64::MAX)
    }

    fn text(&self, what: i32) -> Option<Name<'_>> {
        self.0.text(what).map(Name::new)
    }

    /// The name, exactly as the archive has it. It is no path: nothing here opens or writes a file
    /// of that name.
    pub fn name(&self) -> Name<'_> {
        Name::new(self.0.name())
    }

    /// Bytes that can be read.
    pub fn size(&self) -> u64 {
        self.0.info(sys::SHF_MEMBER_SIZE)
    }

    /// Bytes in the archive.
    pub fn stored_size(&self) -> u64 {
        self.0.info(sys::SHF_MEMBER_STORED)
    }

    /// How it is compressed: 0 stored, 8 deflate, 12 bzip2, 14 LZMA, 93 zstd, 95 xz.
    pub fn method(&self) -> u64 {
        self.0.info(sys::SHF_MEMBER_METHOD)
    }

    /// The CRC-32 that the archive has; none in a tar.
    pub fn crc32(&self) -> Option<u32> {
        u32::try_from(self.0.info(sys::SHF_MEMBER_CRC32)).ok()
    }

    /// Where its first header is in the (decompressed) archive, bytes.
    pub fn offset(&self) -> u64 {
        self.0.info(sys::SHF_MEMBER_OFFSET)
    }

    /// What it is.
    pub fn kind(&self) -> MemberKind {
        MemberKind::of(self.0.info(sys::SHF_MEMBER_KIND))
    }

    /// The permission bits.
    pub fn mode(&self) -> Option<u32> {
        self.known(sys::SHF_MEMBER_MODE).map(|mode| mode as u32)
    }

    /// The number of the owner.
    pub fn uid(&self) -> Option<u64> {
        self.known(sys::SHF_MEMBER_UID)
    }

    /// The number of the group.
    pub fn gid(&self) -> Option<u64> {
        self.known(sys::SHF_MEMBER_GID)
    }

    /// When it was last changed, in nanoseconds since 1970. A DOS time is taken for UTC.
    pub fn mtime_ns(&self) -> Option<i64> {
        self.known(sys::SHF_MEMBER_MTIME).map(|time| time as i64)
    }

    /// What a link in a tar points at. In a ZIP file that is the data of the link.
    pub fn link(&self) -> Option<Name<'_>> {
        self.text(sys::SHF_MEMBER_LINK)
    }

    /// The name of the owner.
    pub fn user(&self) -> Option<Name<'_>> {
        self.text(sys::SHF_MEMBER_USER)
    }

    /// The name of the group.
    pub fn group(&self) -> Option<Name<'_>> {
        self.text(sys::SHF_MEMBER_GROUP)
    }

    /// As [`io::Read::read`], with an error of the library: reads into the start of `buffer`, and
    /// returns how many bytes; 0 at the end of the member.
    ///
    /// # Errors
    ///
    /// `Format`, `Truncated`, `Integrity`, `Ambiguous`, `Unsupported` (also what is
    /// [`MemberKind::Sparse`], or one of the two kinds after it), `Changed`, `Limit`, `Io`, `Child`;
    /// `Timeout` (call again), `Cancelled`, `Forked`, `NoMemory`.
    pub fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.0.read(buffer)
    }
}

impl io::Read for CurrentMember<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_some(buffer)?)
    }
}

impl fmt::Debug for CurrentMember<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentMember")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
