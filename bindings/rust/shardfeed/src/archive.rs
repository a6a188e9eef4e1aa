//! Archives: the members of one tar or ZIP file, in any order.

use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use crate::builder::ArchiveBuilder;
use crate::error::{Error, ErrorKind, Result};
use crate::name::Name;
use crate::native::{self, sys};

/// The members of one tar or ZIP file, by name and by position, in any order.
///
/// It does not change once it is open and takes no locks: any number of threads may use it at
/// once, by reference. Every read checks the CRC and the member's own header.
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// let archive = shardfeed::Archive::open("images.zip")?;
/// let png: Vec<u8> = archive.read(archive.find("img_000.png")?)?;
/// for member in archive.members() {
///     println!("{}: {} bytes", member.name(), member.size());
/// }
/// # assert_eq!((archive.len(), &png[1..4]), (3, &b"PNG"[..]));
/// # Ok::<(), shardfeed::Error>(())
/// ```
pub struct Archive(native::Archive);

impl ArchiveBuilder {
    /// Opens the archive at a URL (a path, `file:`, `-`, `pipe:`; not expanded) and lists its
    /// members. What cannot be read at any offset, such as a pipe, is taken into memory.
    ///
    /// # Errors
    ///
    /// `Format`, `Truncated`, `Integrity`, `Ambiguous`, `Unsupported` (the file as a whole; what is
    /// wrong with one member is said when it is read), `Limit`, `Io`, `Child`, `Usage`, `NoMemory`.
    pub fn open(&self, url: impl AsRef<OsStr>) -> Result<Archive> {
        let options = native::Options::new(&self.settings, "archive")?;
        native::Archive::open(url.as_ref(), &options).map(Archive)
    }

    /// The same over bytes in memory, which the archive keeps: a `Vec<u8>`, `&'static [u8]`,
    /// `Arc<[u8]>`, ...
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_bytes(&self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Archive> {
        let options = native::Options::new(&self.settings, "archive")?;
        native::Archive::open_memory(Arc::new(bytes), &options).map(Archive)
    }
}

impl Archive {
    /// Options, for an archive to be opened with them.
    pub fn builder() -> ArchiveBuilder {
        ArchiveBuilder::default()
    }

    /// Opens an archive with every option at its default.
    ///
    /// # Errors
    ///
    /// As [`ArchiveBuilder::open`].
    pub fn open(url: impl AsRef<OsStr>) -> Result<Archive> {
        Self::builder().open(url)
    }

    /// The number of members; positions are below it.
    pub fn len(&self) -> usize {
        self.0.count() as usize
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of the member of this name, compared byte for byte.
    ///
    /// # Errors
    ///
    /// `NotFound`; `Ambiguous` when several members have the name (the message says where).
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<usize> {
        self.0.find(name.as_ref()).map(|position| position as usize)
    }

    /// What the archive says about a member.
    pub fn member(&self, position: usize) -> Option<Member<'_>> {
        (position < self.len()).then_some(Member { archive: self, position })
    }

    /// All members, in their order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|position| Member { archive: self, position })
    }

    /// The bytes of a member.
    ///
    /// # Errors
    ///
    /// `Usage` (no such position); `Format`, `Integrity`, `Ambiguous`, `Unsupported`, `Limit` (this
    /// member); `Truncated`, `Changed` (the file is not the one that was opened); `Io`, `NoMemory`.
    pub fn read(&self, position: usize) -> Result<Vec<u8>> {
        self.0.read(position as u64)
    }

    /// Reads a member into the first [`Member::size`] bytes of `buffer`, and returns them. When it
    /// fails, the contents of the buffer mean nothing.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); `Usage` when the buffer is too small.
    pub fn read_into<'b>(&self, position: usize, buffer: &'b mut [u8]) -> Result<&'b mut [u8]> {
        self.0.read_into(position as u64, buffer)?;
        let size = self.0.info(position as u64, sys::SHF_MEMBER_SIZE);
        Ok(&mut buffer[..size as usize])
    }

    /// The bytes of many members, in the order asked for; read in the order of the file and by
    /// several threads (option `threads`) where that pays.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read): that of the first bad one in the list.
    pub fn read_many(&self, positions: &[usize]) -> Result<Vec<Vec<u8>>> {
        let positions: Vec<u64> = positions.iter().map(|&position| position as u64).collect();
        self.0.read_many(&positions)
    }

    /// As [`read_many`](Self::read_many), one after another in one buffer, which may be used again:
    /// the quickest way to many members. The buffer grows as needed; what it had is gone.
    ///
    /// # Errors
    ///
    /// As [`read_many`](Self::read_many).
    pub fn read_many_into<'b>(
        &self,
        positions: &[usize],
        buffer: &'b mut Vec<u8>,
    ) -> Result<Vec<&'b [u8]>> {
        let positions: Vec<u64> = positions.iter().map(|&position| position as u64).collect();
        self.0.read_many_into(&positions, buffer)
    }

    /// The bytes of a member where they are in memory already: a stored member of an archive in
    /// memory or, with the option `map`, of a local file, or one of a compressed tar. `None` when
    /// they are not. Under `map` nobody may change the file while it is borrowed.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn view(&self, position: usize) -> Result<Option<&[u8]>> {
        match self.0.view(position as u64) {
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
            result => result.map(Some),
        }
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("members", &self.len()).finish_non_exhaustive()
    }
}

/// What an [`Archive`] says about one of its members. The bytes come with [`read`](Self::read).
#[derive(Clone, Copy)]
pub struct Member<'a> {
    archive: &'a Archive,
    position: usize,
}

/// What a [`Member`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberKind {
    /// A file.
    File,
    /// A folder.
    Directory,
    /// Another name of a file.
    HardLink,
    /// A path to another file.
    SymbolicLink,
    /// A device, FIFO or volume label.
    Special,
    /// A file with holes; reading it is `Unsupported`, as are the next two.
    Sparse,
    /// A piece of a member that began on another volume.
    MultiVolume,
    /// Something else.
    Unknown,
}

impl MemberKind {
    /// Of a number SHF_KIND_*.
    pub(crate) fn of(number: u64) -> MemberKind {
        match i32::try_from(number) {
            Ok(sys::SHF_KIND_FILE) => MemberKind::File,
            Ok(sys::SHF_KIND_DIRECTORY) => MemberKind::Directory,
            Ok(sys::SHF_KIND_HARD_LINK) => MemberKind::HardLink,
            Ok(sys::SHF_KIND_SYMBOLIC_LINK) => MemberKind::SymbolicLink,
            Ok(sys::SHF_KIND_SPECIAL) => MemberKind::Special,
            Ok(sys::SHF_KIND_SPARSE) => MemberKind::Sparse,
            Ok(sys::SHF_KIND_MULTI_VOLUME) => MemberKind::MultiVolume,
            _ => MemberKind::Unknown,
        }
    }
}

impl<'a> Member<'a> {
    fn info(self, what: i32) -> u64 {
        self.archive.0.info(self.position as u64, what)
    }

    /// The name, exactly as the archive has it. It is no path: nothing here opens or writes a file
    /// of that name.
    pub fn name(self) -> Name<'a> {
        Name::new(self.archive.0.name(self.position as u64).unwrap_or_default())
    }

    /// The position in the archive.
    pub fn position(self) -> usize {
        self.position
    }

    /// Bytes that [`read`](Self::read) gives.
    pub fn size(self) -> u64 {
        self.info(sys::SHF_MEMBER_SIZE)
    }

    /// Bytes in the archive.
    pub fn stored_size(self) -> u64 {
        self.info(sys::SHF_MEMBER_STORED)
    }

    /// How it is compressed: 0 stored, 8 deflate, 12 bzip2, 14 LZMA, 93 zstd, 95 xz.
    pub fn method(self) -> u64 {
        self.info(sys::SHF_MEMBER_METHOD)
    }

    /// The CRC-32 that the archive has; none in a tar.
    pub fn crc32(self) -> Option<u32> {
        u32::try_from(self.info(sys::SHF_MEMBER_CRC32)).ok()
    }

    /// Where its first header is in the (decompressed) archive, bytes.
    pub fn offset(self) -> u64 {
        self.info(sys::SHF_MEMBER_OFFSET)
    }

    /// What it is.
    pub fn kind(self) -> MemberKind {
        MemberKind::of(self.info(sys::SHF_MEMBER_KIND))
    }

    /// Its bytes.
    ///
    /// # Errors
    ///
    /// As [`Archive::read`].
    pub fn read(self) -> Result<Vec<u8>, Error> {
        self.archive.read(self.position)
    }
}

impl fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
