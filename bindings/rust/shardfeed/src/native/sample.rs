//! Samples and blocks: read-only, and counted by the library.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::{lent, sys, NO_BYTES};

/// A shf_sample that something else keeps alive for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct SampleRef<'a> {
    pointer: NonNull<sys::shf_sample>,
    owner: PhantomData<&'a sys::shf_sample>,
}

// SAFETY: "Samples and blocks are read-only: any number of threads".
unsafe impl Send for SampleRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for SampleRef<'_> {}

impl<'a> SampleRef<'a> {
    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        let mut out = NO_BYTES;
        // SAFETY: a live sample. The bytes live as long.
        unsafe {
            sys::shf_sample_key(self.pointer.as_ptr(), &mut out);
            lent(out)
        }
    }

    #[inline]
    pub(crate) fn url(self) -> &'a [u8] {
        let mut out = NO_BYTES;
        // SAFETY: a live sample. The bytes live as long.
        unsafe {
            sys::shf_sample_url(self.pointer.as_ptr(), &mut out);
            lent(out)
        }
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        // SAFETY: a live sample.
        unsafe { sys::shf_sample_field_count(self.pointer.as_ptr()) }
    }

    #[inline]
    pub(crate) fn field(self, index: usize) -> Option<(&'a [u8], &'a [u8])> {
        let (mut name, mut data) = (NO_BYTES, NO_BYTES);
        // SAFETY: a live sample; any index. The bytes live as long as the sample.
        unsafe {
            let sample = self.pointer.as_ptr();
            let code = sys::shf_sample_field(sample, index, &mut name, &mut data);
            (code == sys::SHF_OK).then(|| (lent(name), lent(data)))
        }
    }

    #[inline]
    pub(crate) fn data(self, index: usize) -> Option<&'a [u8]> {
        let mut data = NO_BYTES;
        // SAFETY: as in field(); a name is not wanted.
        unsafe {
            let sample = self.pointer.as_ptr();
            let code = sys::shf_sample_field(sample, index, ptr::null_mut(), &mut data);
            (code == sys::SHF_OK).then(|| lent(data))
        }
    }

    #[inline]
    pub(crate) fn find(self, name: &[u8]) -> Option<&'a [u8]> {
        let mut data = NO_BYTES;
        // SAFETY: a live sample; the name has its length. The bytes live as long as the sample.
        unsafe {
            let (sample, text) = (self.pointer.as_ptr(), name.as_ptr().cast());
            let code = sys::shf_sample_find(sample, text, name.len(), &mut data);
            (code == sys::SHF_OK).then(|| lent(data))
        }
    }

    pub(crate) fn position(self, what: i32) -> u64 {
        // SAFETY: a live sample; any number.
        unsafe { sys::shf_sample_info(self.pointer.as_ptr(), what) }
    }

    pub(super) fn pointer(self) -> *mut sys::shf_sample {
        self.pointer.as_ptr()
    }

    /// A reference of its own.
    #[inline]
    pub(crate) fn own(self) -> Sample {
        // SAFETY: a live sample; the reference that this adds is released once.
        unsafe { sys::shf_sample_ref(self.pointer.as_ptr()) };
        Sample { pointer: self.pointer }
    }
}

/// A shf_sample with a reference of its own.
pub(crate) struct Sample {
    pointer: NonNull<sys::shf_sample>,
}

// SAFETY: "Samples and blocks are read-only: any number of threads"; unref from any thread.
unsafe impl Send for Sample {}
// SAFETY: as above.
unsafe impl Sync for Sample {}

impl Sample {
    /// # Safety
    /// The caller has a reference to `pointer` that becomes that of the result.
    pub(super) unsafe fn owning(pointer: NonNull<sys::shf_sample>) -> Sample {
        Sample { pointer }
    }

    #[inline]
    pub(crate) fn borrow(&self) -> SampleRef<'_> {
        SampleRef { pointer: self.pointer, owner: PhantomData }
    }

    pub(super) fn pointer(&self) -> *mut sys::shf_sample {
        self.pointer.as_ptr()
    }
}

impl Drop for Sample {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and released once.
        unsafe { sys::shf_sample_unref(self.pointer.as_ptr()) }
    }
}

/// A shf_block with a reference of its own.
pub(crate) struct Block {
    pointer: NonNull<sys::shf_block>,
}

// SAFETY: "Samples and blocks are read-only: any number of threads"; unref from any thread.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// # Safety
    /// The caller has a reference to `pointer` that becomes that of the result.
    pub(super) unsafe fn owning(pointer: NonNull<sys::shf_block>) -> Block {
        Block { pointer }
    }

    /// Another reference to the same block.
    pub(crate) fn own(&self) -> Block {
        // SAFETY: a live block; the reference that this adds is released once.
        unsafe { sys::shf_block_ref(self.pointer.as_ptr()) };
        Block { pointer: self.pointer }
    }

    pub(crate) fn count(&self) -> usize {
        // SAFETY: a live block.
        unsafe { sys::shf_block_sample_count(self.pointer.as_ptr()) }
    }

    #[inline]
    pub(crate) fn sample(&self, index: usize) -> Option<SampleRef<'_>> {
        // SAFETY: a live block; any index. The sample lives as long as the block.
        let pointer = unsafe { sys::shf_block_sample(self.pointer.as_ptr(), index) };
        Some(SampleRef { pointer: NonNull::new(pointer)?, owner: PhantomData })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and released once.
        unsafe { sys::shf_block_unref(self.pointer.as_ptr()) }
    }
}
