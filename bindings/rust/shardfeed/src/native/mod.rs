//! The boundary to the C library: the only module with unsafe code.
//!
//! A type here owns one handle and has one method for each C function that takes it. What is
//! borrowed from a handle has its lifetime; what the header says of threads is said again beside
//! each `unsafe impl`. Names and numbers are those of C; what users see is made of it outside.
#![allow(unsafe_code)]

mod archive;
mod batch;
mod dataset;
mod members;
mod options;
mod plan;
mod sample;
mod source;
mod stream;
mod tokenizer;
mod writer;

use std::any::Any;
use std::ffi::{c_char, CStr, CString, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

pub(crate) use shardfeed_sys as sys;

pub(crate) use archive::Archive;
pub(crate) use batch::{Batch, Column};
pub(crate) use dataset::{build_index, export_index, import_index, Dataset};
pub(crate) use members::Members;
pub(crate) use options::{expand, option_info, Options};
pub(crate) use plan::Plan;
pub(crate) use sample::{Block, Sample, SampleRef};
pub(crate) use stream::{merge_states, Control, Stream};
pub(crate) use writer::{discard_left, discard_prepared, publish_prepared, Writer, WriterControl};

use crate::error::{Error, ErrorKind, Result};

// ---- Errors ----

/// Makes a call that writes the error when it fails. Its result is SHF_OK or SHF_END.
fn checked(call: impl FnOnce(*mut sys::shf_error) -> i32) -> Result<i32> {
    let mut error = MaybeUninit::<sys::shf_error>::uninit();
    let code = call(error.as_mut_ptr());
    if code >= 0 {
        return Ok(code);
    }
    // SAFETY: a call that fails has written all of it.
    Err(received(unsafe { error.assume_init_ref() }))
}

#[cold]
fn received(error: &sys::shf_error) -> Error {
    let message: Vec<u8> = error.message.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    let message = String::from_utf8_lossy(&message).into_owned();
    Error::new(error.code, error.os_error, error.offset, message)
}

/// Puts a text, or the start of it, into an error of the library, which has zeroed it.
fn write_message(error: &mut sys::shf_error, text: &str) {
    let room = error.message.len() - 1;
    for (to, from) in error.message[..room].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
}

/// What a panic says.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it says not why")
}

/// The text of a static C string; nothing for NULL.
///
/// # Safety
/// `text` is NULL or a NUL-terminated string that is never freed.
unsafe fn static_text(text: *const c_char) -> Option<&'static str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises. The library's own texts are ASCII.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

pub(crate) fn error_name(code: i32) -> &'static str {
    // SAFETY: never NULL, static.
    unsafe { static_text(sys::shf_error_name(code)) }.unwrap_or("UNKNOWN")
}

pub(crate) fn version() -> &'static str {
    // SAFETY: static.
    unsafe { static_text(sys::shf_version_string()) }.unwrap_or_default()
}

pub(crate) fn feature(name: &str) -> Option<&'static str> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is NUL-terminated; the result is static.
    unsafe { static_text(sys::shf_feature(name.as_ptr())) }
}

pub(crate) fn stat_name(stat: i32) -> Option<&'static str> {
    // SAFETY: static or NULL.
    unsafe { static_text(sys::shf_stat_describe(stat, sys::SHF_COUNTER_NAME)) }
}

// ---- Texts and bytes ----

fn c_string(text: &OsStr, what: &str) -> Result<CString> {
    CString::new(text.as_bytes()).map_err(|error| {
        let place = error.nul_position();
        Error::of(
            ErrorKind::Usage,
            format!("{what} has a NUL byte at position {place}; help: take it out"),
        )
    })
}

/// URLs as the library takes them.
pub(crate) struct Urls {
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

impl Urls {
    pub(crate) fn new<U>(urls: U) -> Result<Urls>
    where
        U: IntoIterator,
        U::Item: AsRef<OsStr>,
    {
        let texts = urls.into_iter().map(|url| c_string(url.as_ref(), "the URL"));
        let owned = texts.collect::<Result<Vec<_>>>()?;
        let pointers = owned.iter().map(|url| url.as_ptr()).collect();
        Ok(Urls { pointers, _owned: owned })
    }

    fn pointer(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    fn count(&self) -> usize {
        self.pointers.len()
    }
}

const NO_BYTES: sys::shf_bytes = sys::shf_bytes { data: ptr::null(), size: 0 };

/// Bytes that the library has lent.
///
/// # Safety
/// Unless it is empty, `bytes` is valid and does not change for `'a`. (Where it is of a file under
/// the option map, whoever sets that promises it.)
#[inline]
unsafe fn lent<'a>(bytes: sys::shf_bytes) -> &'a [u8] {
    if bytes.size == 0 {
        return &[]; // data may be NULL
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(bytes.data, bytes.size) }
}
