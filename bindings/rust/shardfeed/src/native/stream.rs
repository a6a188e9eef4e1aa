//! Streams and their saved states.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::options::Receivers;
use super::{checked, lent, sys, Batch, Block, Options, Urls, NO_BYTES};
use crate::error::Result;

/// The handle as other threads see it: nothing from the moment on when it is closed.
struct Handle(Mutex<Option<NonNull<sys::shf_stream>>>);

// SAFETY: "shf_stream_cancel and shf_stream_stat may be called from any thread at any time before
// shf_stream_close"; nothing else is done through it, and the lock keeps the handle open meanwhile.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn lock(&self) -> MutexGuard<'_, Option<NonNull<sys::shf_stream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels a stream from any thread and reads its counters, as long as it is open.
#[derive(Clone)]
pub(crate) struct Control(Arc<Handle>);

impl Control {
    pub(crate) fn cancel(&self) {
        if let Some(stream) = *self.0.lock() {
            // SAFETY: open, as the lock is held.
            unsafe { sys::shf_stream_cancel(stream.as_ptr()) }
        }
    }

    pub(crate) fn stat(&self, stat: i32) -> Option<u64> {
        let stream = self.0.lock();
        // SAFETY: open, as the lock is held.
        let value = unsafe { sys::shf_stream_stat((*stream)?.as_ptr(), stat) };
        (value != u64::MAX).then_some(value)
    }
}

/// A shf_stream.
pub(crate) struct Stream {
    pointer: NonNull<sys::shf_stream>,
    control: Control,
    /// Live as long as the handle; of a mix, those of its parts.
    receivers: Vec<Arc<Receivers>>,
    /// A stream serves one thread at a time.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: "a stream serves one thread at a time (it may be another one each time)".
unsafe impl Send for Stream {}

impl Stream {
    pub(crate) fn open(urls: &Urls, options: &Options) -> Result<Stream> {
        let mut out = ptr::null_mut();
        // SAFETY: the URLs and options live until the call returns; they are copied.
        let result = checked(|error| unsafe {
            sys::shf_stream_open(&mut out, urls.pointer(), urls.count(), options.pointer(), error)
        });
        let stream = NonNull::new(out).map(|pointer| Stream {
            pointer,
            control: Control(Arc::new(Handle(Mutex::new(Some(pointer))))),
            receivers: options.receivers().into_iter().collect(),
            not_sync: PhantomData,
        });
        options.resume_panic();
        result?;
        Ok(stream.expect("a stream on success"))
    }

    /// A stream of parts by weight, which it takes over.
    pub(crate) fn mix(parts: Vec<Stream>, weights: &[f64], options: &Options) -> Result<Stream> {
        assert_eq!(parts.len(), weights.len());
        // No other thread has a call on a part while it is taken over, or finds it afterwards.
        let mut handles: Vec<_> = parts.iter().map(|part| part.control.0.lock()).collect();
        let pointers: Vec<_> = parts.iter().map(|part| part.pointer.as_ptr()).collect();
        let mut out = ptr::null_mut();
        // SAFETY: open streams with a weight each; the options live until the call returns.
        checked(|error| unsafe {
            let (list, count) = (pointers.as_ptr(), pointers.len());
            sys::shf_stream_mix(&mut out, list, weights.as_ptr(), count, options.pointer(), error)
        })?;
        handles.iter_mut().for_each(|handle| **handle = None); // they are gone
        drop(handles);
        let pointer = NonNull::new(out).expect("a stream on success");
        let receivers = parts.iter().flat_map(|part| part.receivers.iter().cloned());
        Ok(Stream {
            pointer,
            control: Control(Arc::new(Handle(Mutex::new(Some(pointer))))),
            receivers: receivers.chain(options.receivers()).collect(),
            not_sync: PhantomData,
        })
    }

    /// The next block; nothing at the end. The panic of a receiver is kept for resume_panic().
    pub(crate) fn next_block(&mut self, max_samples: usize) -> Result<Option<Block>> {
        let mut out = ptr::null_mut();
        // SAFETY: an open stream, used by this thread alone.
        checked(|error| unsafe {
            sys::shf_stream_next_block(self.pointer.as_ptr(), max_samples, &mut out, error)
        })?;
        // SAFETY: the reference is the caller's; NULL at the end.
        Ok(NonNull::new(out).map(|block| unsafe { Block::owning(block) }))
    }

    /// The next batch; nothing at the end. The panic of a receiver is kept for resume_panic().
    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch>> {
        let mut out = ptr::null_mut();
        // SAFETY: an open stream, used by this thread alone.
        checked(|error| unsafe {
            sys::shf_stream_next_batch(self.pointer.as_ptr(), &mut out, error)
        })?;
        // SAFETY: the reference is the caller's; NULL at the end.
        Ok(NonNull::new(out).map(|batch| unsafe { Batch::owning(batch) }))
    }

    /// Continues with the panic of a receiver in the last call.
    #[inline]
    pub(crate) fn resume_panic(&self) {
        for receivers in &self.receivers {
            receivers.resume_panic();
        }
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    pub(crate) fn save(&mut self, unread: usize) -> Result<Vec<u8>> {
        let mut out = ptr::null_mut();
        // SAFETY: an open stream, used by this thread alone.
        checked(|error| unsafe {
            sys::shf_stream_save(self.pointer.as_ptr(), unread, &mut out, error)
        })?;
        // SAFETY: a state that is the caller's.
        Ok(unsafe { taken(out) })
    }

    pub(crate) fn restore(&mut self, state: &[u8]) -> Result<()> {
        // SAFETY: an open stream, used by this thread alone; bytes with their length.
        checked(|error| unsafe {
            let stream = self.pointer.as_ptr();
            sys::shf_stream_restore(stream, state.as_ptr(), state.len(), error)
        })?;
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // No other thread gets at the handle any more. Closing may take its time: the lock is free.
        let open = self.control.0.lock().take();
        if let Some(stream) = open {
            // SAFETY: owned, and closed once; no other call runs.
            unsafe { sys::shf_stream_close(stream.as_ptr()) }
        }
    }
}

/// The bytes of a state, which is freed.
///
/// # Safety
/// `state` is a state that the caller owns.
unsafe fn taken(state: *mut sys::shf_state) -> Vec<u8> {
    let mut bytes = NO_BYTES;
    // SAFETY: as the caller promises; the bytes are copied before it is freed.
    unsafe {
        sys::shf_state_bytes(state, &mut bytes);
        let copy = lent(bytes).to_vec();
        sys::shf_state_free(state);
        copy
    }
}

pub(crate) fn merge_states<'a>(states: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let states: Vec<_> = states
        .into_iter()
        .map(|bytes| sys::shf_bytes { data: bytes.as_ptr(), size: bytes.len() })
        .collect();
    let mut out = ptr::null_mut();
    // SAFETY: the states live until the call returns.
    checked(|error| unsafe {
        sys::shf_state_merge(states.as_ptr(), states.len(), &mut out, error)
    })?;
    // SAFETY: a state that is the caller's.
    Ok(unsafe { taken(out) })
}
