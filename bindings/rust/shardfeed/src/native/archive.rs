//! Archives: they do not change, and take no locks.

use std::ffi::{c_void, OsStr};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::{c_string, checked, lent, sys, Options, NO_BYTES};
use crate::error::{Error, ErrorKind, Result};

/// A shf_archive.
pub(crate) struct Archive {
    pointer: NonNull<sys::shf_archive>,
    /// Of an archive in memory its bytes, which stay as they are: nobody has another way to them.
    _memory: Option<Arc<dyn AsRef<[u8]> + Send + Sync>>,
}

// SAFETY: "An archive does not change once it is open and takes no locks: any number of threads".
unsafe impl Send for Archive {}
// SAFETY: as above.
unsafe impl Sync for Archive {}

impl Archive {
    pub(crate) fn open(url: &OsStr, options: &Options) -> Result<Archive> {
        let url = c_string(url, "the URL")?;
        let mut out = ptr::null_mut();
        // SAFETY: a NUL-terminated URL; the options live until the call returns.
        let result = checked(|error| unsafe {
            sys::shf_archive_open(&mut out, url.as_ptr(), options.pointer(), error)
        });
        Self::opened(out, None, result, options)
    }

    pub(crate) fn open_memory(
        memory: Arc<dyn AsRef<[u8]> + Send + Sync>,
        options: &Options,
    ) -> Result<Archive> {
        let bytes = (*memory).as_ref();
        let mut out = ptr::null_mut();
        // SAFETY: the bytes are kept, where they are, until the archive is closed.
        let result = checked(|error| unsafe {
            let (data, size) = (bytes.as_ptr().cast(), bytes.len());
            sys::shf_archive_open_memory(&mut out, data, size, options.pointer(), error)
        });
        Self::opened(out, Some(memory), result, options)
    }

    fn opened(
        out: *mut sys::shf_archive,
        memory: Option<Arc<dyn AsRef<[u8]> + Send + Sync>>,
        result: Result<i32>,
        options: &Options,
    ) -> Result<Archive> {
        let archive = NonNull::new(out).map(|pointer| Archive { pointer, _memory: memory });
        options.resume_panic();
        result?;
        Ok(archive.expect("an archive on success"))
    }

    pub(crate) fn count(&self) -> u64 {
        // SAFETY: an open archive.
        unsafe { sys::shf_archive_member_count(self.pointer.as_ptr()) }
    }

    pub(crate) fn find(&self, name: &[u8]) -> Result<u64> {
        let mut position = 0;
        // SAFETY: an open archive; the name has its length.
        checked(|error| unsafe {
            let (archive, text) = (self.pointer.as_ptr(), name.as_ptr().cast());
            sys::shf_archive_find(archive, text, name.len(), &mut position, error)
        })?;
        Ok(position)
    }

    pub(crate) fn name(&self, position: u64) -> Option<&[u8]> {
        let mut out = NO_BYTES;
        // SAFETY: an open archive; any position. The name lives as long as the archive.
        unsafe {
            let code = sys::shf_archive_name(self.pointer.as_ptr(), position, &mut out);
            (code == sys::SHF_OK).then(|| lent(out))
        }
    }

    pub(crate) fn info(&self, position: u64, what: i32) -> u64 {
        // SAFETY: an open archive; any numbers.
        unsafe { sys::shf_archive_info(self.pointer.as_ptr(), position, what) }
    }

    /// Memory for a member, which has room for `size` bytes and no bytes yet. Sizes are claims of a
    /// file: what cannot be had is an error and no abort.
    fn room(&self, position: u64) -> Result<Vec<u8>> {
        let size = self.info(position, sys::SHF_MEMBER_SIZE);
        let mut room = Vec::new();
        // There is no such position: reading will say so.
        let size = if size == u64::MAX { 0 } else { size };
        usize::try_from(size).ok().and_then(|size| room.try_reserve_exact(size).ok()).ok_or_else(
            || Error::of(ErrorKind::NoMemory, format!("no memory for a member of {size} bytes")),
        )?;
        Ok(room)
    }

    pub(crate) fn read(&self, position: u64) -> Result<Vec<u8>> {
        let mut room = self.room(position)?;
        // SAFETY: the member fits into `room`, and is there once the call has succeeded: as many
        // bytes as room() asked for.
        unsafe {
            self.read_to(position, room.as_mut_ptr(), room.capacity())?;
            room.set_len(self.info(position, sys::SHF_MEMBER_SIZE) as usize);
        }
        Ok(room)
    }

    pub(crate) fn read_into(&self, position: u64, buffer: &mut [u8]) -> Result<()> {
        // SAFETY: the buffer has its length.
        unsafe { self.read_to(position, buffer.as_mut_ptr(), buffer.len()) }
    }

    /// # Safety
    /// There is room for `capacity` bytes.
    unsafe fn read_to(&self, position: u64, buffer: *mut u8, capacity: usize) -> Result<()> {
        // SAFETY: an open archive; any position; as the caller promises.
        checked(|error| unsafe {
            let archive = self.pointer.as_ptr();
            sys::shf_archive_read(archive, position, buffer.cast(), capacity, error)
        })?;
        Ok(())
    }

    pub(crate) fn read_many(&self, positions: &[u64]) -> Result<Vec<Vec<u8>>> {
        let rooms = positions.iter().map(|&position| self.room(position));
        let mut rooms = rooms.collect::<Result<Vec<_>>>()?;
        let buffers: Vec<_> = rooms.iter_mut().map(|room| room.as_mut_ptr().cast()).collect();
        // SAFETY: as many buffers as positions, each with room for its member.
        unsafe { self.read_to_each(positions, &buffers)? };
        for (room, &position) in rooms.iter_mut().zip(positions) {
            // SAFETY: all members are there once the call has succeeded.
            unsafe { room.set_len(self.info(position, sys::SHF_MEMBER_SIZE) as usize) }
        }
        Ok(rooms)
    }

    /// Reads members one after another into `buffer`, from its start.
    pub(crate) fn read_many_into<'b>(
        &self,
        positions: &[u64],
        buffer: &'b mut Vec<u8>,
    ) -> Result<Vec<&'b [u8]>> {
        buffer.clear();
        let size = |&position: &u64| match self.info(position, sys::SHF_MEMBER_SIZE) {
            u64::MAX => Some(0), // there is no such position: reading will say so
            size => usize::try_from(size).ok(),
        };
        let sizes = positions.iter().map(size).collect::<Option<Vec<_>>>();
        let total =
            |sizes: &Vec<usize>| sizes.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
        let room = sizes.and_then(|sizes| Some((total(&sizes)?, sizes)));
        let (total, sizes) =
            room.filter(|&(total, _)| buffer.try_reserve_exact(total).is_ok()).ok_or_else(
                || Error::of(ErrorKind::NoMemory, "no memory for the members".to_owned()),
            )?;
        let start: *mut u8 = buffer.as_mut_ptr();
        let buffers = sizes.iter().scan(0, |place, &size| {
            // SAFETY: within the room for all of them.
            let buffer = unsafe { start.add(*place) };
            *place += size;
            Some(buffer.cast())
        });
        let buffers: Vec<*mut c_void> = buffers.collect();
        // SAFETY: as many buffers as positions, each with room for its member, none of which
        // overlap. All of them are there once the call has succeeded.
        unsafe {
            self.read_to_each(positions, &buffers)?;
            buffer.set_len(total);
        }
        let mut rest = &buffer[..];
        let members = sizes.into_iter().map(|size| {
            let (member, others) = rest.split_at(size);
            rest = others;
            member
        });
        Ok(members.collect())
    }

    /// # Safety
    /// There are as many buffers as positions, and each has room for its member.
    unsafe fn read_to_each(&self, positions: &[u64], buffers: &[*mut c_void]) -> Result<()> {
        // SAFETY: an open archive; as the caller promises. A position that there is not is an error.
        checked(|error| unsafe {
            let (archive, count) = (self.pointer.as_ptr(), positions.len());
            sys::shf_archive_read_many(archive, positions.as_ptr(), count, buffers.as_ptr(), error)
        })?;
        Ok(())
    }

    pub(crate) fn view(&self, position: u64) -> Result<&[u8]> {
        let mut out = NO_BYTES;
        // SAFETY: an open archive; any position.
        checked(|error| unsafe {
            sys::shf_archive_view(self.pointer.as_ptr(), position, &mut out, error)
        })?;
        // SAFETY: in memory that the library or this archive keeps, and that does not change; with
        // the option map as long as nobody changes the file, which whoever sets it promises.
        Ok(unsafe { lent(out) })
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: owned, and closed once; no other call runs.
        unsafe { sys::shf_archive_close(self.pointer.as_ptr()) }
    }
}
