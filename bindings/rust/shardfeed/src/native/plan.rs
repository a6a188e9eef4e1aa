//! Plans of runs.

use std::ptr::{self, NonNull};

use super::{checked, lent, sys, Options, Urls, NO_BYTES};
use crate::error::Result;

/// A shf_plan.
pub(crate) struct Plan {
    pointer: NonNull<sys::shf_plan>,
}

// SAFETY: a plan "does not change: any number of threads".
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    pub(crate) fn make(urls: &Urls, options: &Options) -> Result<Plan> {
        let mut out = ptr::null_mut();
        // SAFETY: the URLs and options live until the call returns; they are copied.
        let result = checked(|error| unsafe {
            sys::shf_plan_make(&mut out, urls.pointer(), urls.count(), options.pointer(), error)
        });
        let plan = NonNull::new(out).map(|pointer| Plan { pointer });
        options.resume_panic();
        result?;
        Ok(plan.expect("a plan on success"))
    }

    /// `bytes` are as many as `samples`.
    pub(crate) fn simulate(
        samples: &[u64],
        bytes: Option<&[u64]>,
        options: &Options,
    ) -> Result<Plan> {
        let mut out = ptr::null_mut();
        let sizes = bytes.map_or(ptr::null(), <[u64]>::as_ptr);
        // SAFETY: both arrays have samples.len() numbers, which are copied.
        checked(|error| unsafe {
            let (pointer, count) = (samples.as_ptr(), samples.len());
            sys::shf_plan_simulate(&mut out, pointer, sizes, count, options.pointer(), error)
        })?;
        Ok(Plan { pointer: NonNull::new(out).expect("a plan on success") })
    }

    /// Four numbers for each reading.
    pub(crate) fn reads(&self, consumer: u64) -> Result<Vec<[u64; 4]>> {
        let mut reads: Vec<[u64; 4]> = Vec::new();
        loop {
            let mut count = 0;
            // SAFETY: a live plan; there is room for reads.len() times four numbers.
            checked(|error| unsafe {
                let (plan, room) = (self.pointer.as_ptr(), reads.len());
                let numbers = reads.as_mut_ptr().cast();
                sys::shf_plan_reads(plan, consumer, numbers, room, &mut count, error)
            })?;
            if count == reads.len() {
                return Ok(reads);
            }
            reads.resize(count, [0; 4]);
        }
    }

    pub(crate) fn text(&self) -> &[u8] {
        let mut out = NO_BYTES;
        // SAFETY: a live plan. The bytes live as long.
        unsafe {
            sys::shf_plan_text(self.pointer.as_ptr(), &mut out);
            lent(out)
        }
    }

    pub(crate) fn warning(&self, index: usize) -> Option<&[u8]> {
        let mut out = NO_BYTES;
        // SAFETY: a live plan; any index. The bytes live as long as the plan.
        unsafe {
            let code = sys::shf_plan_warning(self.pointer.as_ptr(), index, &mut out);
            (code == sys::SHF_OK).then(|| lent(out))
        }
    }

    pub(crate) fn count(&self) -> u64 {
        // SAFETY: a live plan.
        unsafe { sys::shf_plan_consumer_count(self.pointer.as_ptr()) }
    }

    pub(crate) fn shard_count(&self) -> u64 {
        // SAFETY: a live plan.
        unsafe { sys::shf_plan_shard_count(self.pointer.as_ptr()) }
    }

    pub(crate) fn shard_info(&self, shard: u64, what: i32) -> u64 {
        // SAFETY: a live plan; any numbers.
        unsafe { sys::shf_plan_shard_info(self.pointer.as_ptr(), shard, what) }
    }

    pub(crate) fn info(&self, consumer: u64, what: i32) -> u64 {
        // SAFETY: a live plan; any numbers.
        unsafe { sys::shf_plan_info(self.pointer.as_ptr(), consumer, what) }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { sys::shf_plan_free(self.pointer.as_ptr()) }
    }
}
