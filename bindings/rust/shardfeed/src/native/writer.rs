//! Writers.

use std::cell::Cell;
use std::ffi::{c_char, OsStr};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{c_string, checked, lent, sys, Options, SampleRef, NO_BYTES};
use crate::error::Result;

/// The handle as other threads see it: nothing from the moment on when it is closed.
struct Handle(Mutex<Option<NonNull<sys::shf_writer>>>);

// SAFETY: shf_writer_cancel: "any thread, before shf_writer_close"; nothing else is done through
// it, and the lock keeps the handle open meanwhile.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn lock(&self) -> MutexGuard<'_, Option<NonNull<sys::shf_writer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels a writer from any thread, as long as it is open.
#[derive(Clone)]
pub(crate) struct WriterControl(Arc<Handle>);

impl WriterControl {
    pub(crate) fn cancel(&self) {
        if let Some(writer) = *self.0.lock() {
            // SAFETY: open, as the lock is held.
            unsafe { sys::shf_writer_cancel(writer.as_ptr()) }
        }
    }
}

/// A shf_writer.
pub(crate) struct Writer {
    pointer: NonNull<sys::shf_writer>,
    control: WriterControl,
    /// Their functions are called as long as the handle is open.
    options: Options,
    /// A writer serves one thread at a time.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: a writer "serves one thread at a time", any of them. The options are used by the thread
// that uses the handle, and their functions are Send.
unsafe impl Send for Writer {}

impl Writer {
    /// No pattern: a function of the options names the shards.
    pub(crate) fn open(pattern: Option<&OsStr>, options: Options) -> Result<Writer> {
        let pattern = pattern.map(|text| c_string(text, "the pattern")).transpose()?;
        let text = pattern.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut out = ptr::null_mut();
        // SAFETY: a NUL-terminated pattern or none; the options live longer than the handle.
        let result = checked(|error| unsafe {
            sys::shf_writer_open(&mut out, text, options.pointer(), error)
        });
        options.resume_panic();
        result?;
        let pointer = NonNull::new(out).expect("a writer on success");
        let control = WriterControl(Arc::new(Handle(Mutex::new(Some(pointer)))));
        Ok(Writer { pointer, control, options, not_sync: PhantomData })
    }

    /// Makes a call with the handle, and continues with the panic of a function of the options.
    fn call(
        &mut self,
        call: impl FnOnce(*mut sys::shf_writer, *mut sys::shf_error) -> i32,
    ) -> Result<()> {
        let result = checked(|error| call(self.pointer.as_ptr(), error));
        self.options.resume_panic();
        result.map(drop)
    }

    pub(crate) fn begin(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone; the key has its length.
        self.call(|writer, error| unsafe {
            sys::shf_writer_begin(writer, key.as_ptr().cast(), key.len(), error)
        })
    }

    pub(crate) fn field(&mut self, name: &[u8], data: &[u8]) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone; name and bytes have their lengths, and
        // are copied.
        self.call(|writer, error| unsafe {
            let (name, size) = (name.as_ptr().cast(), name.len());
            sys::shf_writer_field(writer, name, size, data.as_ptr().cast(), data.len(), error)
        })
    }

    pub(crate) fn field_file(&mut self, name: &[u8], path: &OsStr) -> Result<()> {
        let path = c_string(path, "the path")?;
        // SAFETY: an open writer, used by this thread alone; the name has its length, the path is
        // NUL-terminated.
        self.call(|writer, error| unsafe {
            let (name, size) = (name.as_ptr().cast(), name.len());
            sys::shf_writer_field_file(writer, name, size, path.as_ptr(), error)
        })
    }

    pub(crate) fn field_url(&mut self, name: &[u8], url: &OsStr) -> Result<()> {
        let url = c_string(url, "the URL")?;
        // SAFETY: an open writer, used by this thread alone; the name has its length, the URL is
        // NUL-terminated.
        self.call(|writer, error| unsafe {
            let (name, size) = (name.as_ptr().cast(), name.len());
            sys::shf_writer_field_url(writer, name, size, url.as_ptr(), error)
        })
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone.
        self.call(|writer, error| unsafe { sys::shf_writer_end(writer, error) })
    }

    pub(crate) fn write(&mut self, sample: SampleRef<'_>) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone, and a live sample.
        self.call(|writer, error| unsafe { sys::shf_writer_write(writer, sample.pointer(), error) })
    }

    pub(crate) fn next_shard(&mut self) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone.
        self.call(|writer, error| unsafe { sys::shf_writer_next_shard(writer, error) })
    }

    pub(crate) fn flush(&mut self, durable: bool) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone.
        self.call(|writer, error| unsafe {
            sys::shf_writer_flush(writer, i32::from(durable), error)
        })
    }

    pub(crate) fn finish(&mut self) -> Result<()> {
        // SAFETY: an open writer, used by this thread alone.
        self.call(|writer, error| unsafe { sys::shf_writer_finish(writer, error) })
    }

    /// The number of published shards. As the two that follow it takes `&self`, which is enough:
    /// the writer is not Sync.
    pub(crate) fn shards(&self) -> u64 {
        // SAFETY: an open writer, used by this thread alone.
        unsafe { sys::shf_writer_shards(self.pointer.as_ptr()) }
    }

    pub(crate) fn shard_info(&self, shard: u64, what: i32) -> u64 {
        // SAFETY: an open writer, used by this thread alone; any numbers.
        unsafe { sys::shf_writer_shard_info(self.pointer.as_ptr(), shard, what) }
    }

    /// A copy: the text is lent only until the next call of the writer.
    pub(crate) fn shard_text(&self, shard: u64, what: i32) -> Option<Vec<u8>> {
        let mut out = NO_BYTES;
        // SAFETY: an open writer, used by this thread alone; any numbers.
        unsafe {
            let writer = self.pointer.as_ptr();
            let code = sys::shf_writer_shard_text(writer, shard, what, &mut out);
            (code == sys::SHF_OK).then(|| lent(out).to_vec())
        }
    }

    pub(crate) fn control(&self) -> &WriterControl {
        &self.control
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // No other thread gets at the handle any more. Closing may take its time: the lock is free.
        let open = self.control.0.lock().take();
        if let Some(writer) = open {
            // SAFETY: owned, and closed once; no other call runs.
            unsafe { sys::shf_writer_close(writer.as_ptr()) }
        }
    }
}

type WithToken =
    unsafe extern "C" fn(*const c_char, *const sys::shf_options, *mut sys::shf_error) -> i32;

/// Calls a function of the library with a text of the user.
fn with_text(function: WithToken, text: &OsStr, what: &str, options: &Options) -> Result<()> {
    let text = c_string(text, what)?;
    // SAFETY: everything lives until the call returns.
    let result = checked(|error| unsafe { function(text.as_ptr(), options.pointer(), error) });
    options.resume_panic();
    result.map(drop)
}

pub(crate) fn publish_prepared(token: &str, options: &Options) -> Result<()> {
    with_text(sys::shf_publish_prepared, OsStr::new(token), "the token", options)
}

pub(crate) fn discard_prepared(token: &str, options: &Options) -> Result<()> {
    with_text(sys::shf_discard_prepared, OsStr::new(token), "the token", options)
}

pub(crate) fn discard_left(pattern: &OsStr, options: &Options) -> Result<()> {
    with_text(sys::shf_discard_left, pattern, "the pattern", options)
}
