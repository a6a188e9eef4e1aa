//! Members in sequence.

use std::cell::Cell;
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::{c_string, checked, lent, sys, Options, NO_BYTES};
use crate::error::Result;

/// A shf_members.
pub(crate) struct Members {
    pointer: NonNull<sys::shf_members>,
    /// Of the current member; lent by the handle until the next one.
    name: sys::shf_bytes,
    /// Their interrupt function is asked as long as the handle is open.
    options: Options,
    /// A handle serves one thread at a time.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: "Threads: one at a time". The options are used by the thread that uses the handle, and
// their functions are Send.
unsafe impl Send for Members {}

impl Members {
    pub(crate) fn open(url: &OsStr, options: Options) -> Result<Members> {
        let url = c_string(url, "the URL")?;
        let mut out = ptr::null_mut();
        // SAFETY: a NUL-terminated URL; the options live longer than the handle.
        let result = checked(|error| unsafe {
            sys::shf_members_open(&mut out, url.as_ptr(), options.pointer(), error)
        });
        options.resume_panic();
        result?;
        let pointer = NonNull::new(out).expect("a handle on success");
        Ok(Members { pointer, name: NO_BYTES, options, not_sync: PhantomData })
    }

    /// Moves to the next member; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool> {
        // SAFETY: an open handle, used by this thread alone.
        let result = checked(|error| unsafe {
            sys::shf_members_next(self.pointer.as_ptr(), &mut self.name, error)
        });
        self.options.resume_panic();
        Ok(result? == sys::SHF_OK)
    }

    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: lent until the next call of next(), which takes `&mut`.
        unsafe { lent(self.name) }
    }

    pub(crate) fn info(&self, what: i32) -> u64 {
        // SAFETY: an open handle; any number.
        unsafe { sys::shf_members_info(self.pointer.as_ptr(), what) }
    }

    pub(crate) fn text(&self, what: i32) -> Option<&[u8]> {
        let mut out = NO_BYTES;
        // SAFETY: an open handle; any number. Lent as the name is.
        unsafe {
            let code = sys::shf_members_text(self.pointer.as_ptr(), what, &mut out);
            (code == sys::SHF_OK).then(|| lent(out))
        }
    }

    /// Reads into the start of `buffer`, which is not empty; 0 at the end of the member.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut size = 0;
        // SAFETY: an open handle, used by this thread alone; the buffer has its length.
        let result = checked(|error| unsafe {
            let (members, data) = (self.pointer.as_ptr(), buffer.as_mut_ptr().cast());
            sys::shf_members_read(members, data, buffer.len(), &mut size, error)
        });
        self.options.resume_panic();
        result.map(|_| size)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        // SAFETY: owned, and closed once; no other call runs.
        unsafe { sys::shf_members_close(self.pointer.as_ptr()) }
    }
}
