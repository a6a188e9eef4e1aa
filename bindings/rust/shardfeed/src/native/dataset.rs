//! Datasets: they do not change, and take no locks. And their indexes.

use std::ffi::OsStr;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::options::Receivers;
use super::{c_string, checked, sys, Batch, Options, Sample, Urls};
use crate::error::Result;

/// A shf_dataset.
pub(crate) struct Dataset {
    pointer: NonNull<sys::shf_dataset>,
    _receivers: Option<Arc<Receivers>>,
}

// SAFETY: "A dataset does not change once it is open and takes no locks: any number of threads".
unsafe impl Send for Dataset {}
// SAFETY: as above.
unsafe impl Sync for Dataset {}

impl Dataset {
    pub(crate) fn open(urls: &Urls, options: &Options) -> Result<Dataset> {
        let mut out = ptr::null_mut();
        // SAFETY: the URLs and options live until the call returns.
        let result = checked(|error| unsafe {
            let (urls, count, options) = (urls.pointer(), urls.count(), options.pointer());
            sys::shf_dataset_open(&mut out, urls, count, options, error)
        });
        let dataset =
            NonNull::new(out).map(|pointer| Dataset { pointer, _receivers: options.receivers() });
        options.resume_panic();
        result?;
        Ok(dataset.expect("a dataset on success"))
    }

    pub(crate) fn count(&self) -> u64 {
        // SAFETY: an open dataset.
        unsafe { sys::shf_dataset_sample_count(self.pointer.as_ptr()) }
    }

    pub(crate) fn get(&self, number: u64) -> Result<Sample> {
        let mut out = ptr::null_mut();
        // SAFETY: an open dataset; any number.
        checked(|error| unsafe {
            sys::shf_dataset_get(self.pointer.as_ptr(), number, &mut out, error)
        })?;
        let sample = NonNull::new(out).expect("a sample on success");
        // SAFETY: the reference is the caller's.
        Ok(unsafe { Sample::owning(sample) })
    }

    pub(crate) fn get_many(&self, numbers: &[u64]) -> Result<Vec<Sample>> {
        let mut out = vec![ptr::null_mut(); numbers.len()];
        // SAFETY: an open dataset; as many places as numbers. On failure all are NULL.
        checked(|error| unsafe {
            let (dataset, count) = (self.pointer.as_ptr(), numbers.len());
            sys::shf_dataset_get_many(dataset, numbers.as_ptr(), count, out.as_mut_ptr(), error)
        })?;
        let samples = out.into_iter().map(|sample| {
            let sample = NonNull::new(sample).expect("a sample on success");
            // SAFETY: the reference is the caller's.
            unsafe { Sample::owning(sample) }
        });
        Ok(samples.collect())
    }

    /// Made with `options`, or with those of the dataset.
    pub(crate) fn get_batch(&self, numbers: &[u64], options: Option<&Options>) -> Result<Batch> {
        let mut out = ptr::null_mut();
        // SAFETY: an open dataset; the numbers have their count; options, or NULL.
        checked(|error| unsafe {
            let (dataset, count) = (self.pointer.as_ptr(), numbers.len());
            let options = options.map_or(ptr::null(), Options::pointer);
            sys::shf_dataset_get_batch(dataset, numbers.as_ptr(), count, options, &mut out, error)
        })?;
        let batch = NonNull::new(out).expect("a batch on success");
        // SAFETY: the reference is the caller's.
        Ok(unsafe { Batch::owning(batch) })
    }

    pub(crate) fn find(&self, key: &[u8]) -> Result<u64> {
        let mut number = 0;
        // SAFETY: an open dataset; the key has its length.
        checked(|error| unsafe {
            let (dataset, text) = (self.pointer.as_ptr(), key.as_ptr().cast());
            sys::shf_dataset_find(dataset, text, key.len(), &mut number, error)
        })?;
        Ok(number)
    }

    pub(crate) fn shard(&self, number: u64) -> Option<(u64, u64)> {
        let (mut shard, mut first) = (0, 0);
        let dataset = self.pointer.as_ptr();
        // SAFETY: an open dataset; any number.
        let code = unsafe { sys::shf_dataset_shard(dataset, number, &mut shard, &mut first) };
        (code == sys::SHF_OK).then_some((shard, first))
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        // SAFETY: owned, and closed once; no other call runs.
        unsafe { sys::shf_dataset_close(self.pointer.as_ptr()) }
    }
}

pub(crate) fn build_index(url: &OsStr, options: &Options) -> Result<()> {
    let url = c_string(url, "the URL")?;
    // SAFETY: everything lives until the call returns.
    let result =
        checked(|error| unsafe { sys::shf_index_build(url.as_ptr(), options.pointer(), error) });
    options.resume_panic();
    result.map(drop)
}

pub(crate) fn export_index(
    urls: &Urls,
    format: i32,
    path: &OsStr,
    options: &Options,
) -> Result<()> {
    let path = c_string(path, "the path")?;
    // SAFETY: everything lives until the call returns.
    let result = checked(|error| unsafe {
        let (urls, count, path) = (urls.pointer(), urls.count(), path.as_ptr());
        sys::shf_index_export(urls, count, format, path, options.pointer(), error)
    });
    options.resume_panic();
    result.map(drop)
}

pub(crate) fn import_index(
    url: Option<&OsStr>,
    format: i32,
    path: &OsStr,
    options: &Options,
) -> Result<()> {
    let url = url.map(|url| c_string(url, "the URL")).transpose()?;
    let path = c_string(path, "the path")?;
    // SAFETY: everything lives until the call returns; an index of wids has no URL.
    let result = checked(|error| unsafe {
        let url = url.as_ref().map_or(ptr::null(), |url| url.as_ptr());
        sys::shf_index_import(url, format, path.as_ptr(), options.pointer(), error)
    });
    options.resume_panic();
    result.map(drop)
}
