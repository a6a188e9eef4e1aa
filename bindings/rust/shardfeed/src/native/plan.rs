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
