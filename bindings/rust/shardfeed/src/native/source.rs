//! Sources of the program, as the library calls them.

use std::ffi::{c_char, c_void, CStr, OsStr};
use std::io;
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use super::{c_string, checked, panic_text, sys, write_message};
use crate::error::Result;
use crate::source::{Served, Source, SourceObject};

type Context = Arc<dyn Source>;
type Object = Box<dyn SourceObject>;

/// Makes a source serve the calls with these options.
///
/// # Safety
/// `options` is a shf_options that nobody else uses.
pub(super) unsafe fn set(options: *mut sys::shf_options, served: &Served) -> Result<()> {
    let table = sys::shf_source {
        struct_size: size_of::<sys::shf_source>(),
        open: Some(open),
        size: Some(size),
        version: Some(version),
        read_at: Some(read_at),
        close: Some(close),
        release: Some(release),
    };
    let scheme = c_string(OsStr::new(&served.scheme), "the scheme of a source")?;
    let context = Box::into_raw(Box::new(Arc::clone(&served.source)));
    // SAFETY: as the caller promises; the scheme and the table are borrowed for the call.
    let set = checked(|error| unsafe {
        sys::shf_options_set_source(options, scheme.as_ptr(), &table, context.cast(), error)
    });
    if set.is_err() {
        // SAFETY: made above, and not taken.
        drop(unsafe { Box::from_raw(context) });
    }
    set.map(|_| ())
}

/// Runs a function of the user, out of which nothing may unwind. Its result, or the code of what
/// went wrong, which is in `error`.
fn run<R>(error: &mut sys::shf_error, function: impl FnOnce() -> io::Result<R>) -> Result<R, i32> {
    let (code, message) = match catch_unwind(AssertUnwindSafe(function)) {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(raised)) => {
            error.os_error = raised.raw_os_error().unwrap_or(0);
            let code = match raised.kind() {
                io::ErrorKind::UnexpectedEof => sys::SHF_E_TRUNCATED,
                io::ErrorKind::OutOfMemory => sys::SHF_E_NOMEM,
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => sys::SHF_E_USAGE,
                _ => sys::SHF_E_IO,
            };
            (code, catch_unwind(AssertUnwindSafe(|| raised.to_string())).unwrap_or_default())
        }
        Err(payload) => {
            (sys::SHF_E_USAGE, format!("the source panicked: {}", panic_text(&*payload)))
        }
    };
    write_message(error, &message);
    Err(code)
}

/// # Safety
/// `context` is a `Context`; the other pointers are what the library gives to `open` of shf_source.
unsafe extern "C" fn open(
    context: *mut c_void,
    url: *const c_char,
    object: *mut *mut c_void,
    flags: *mut u32,
    error: *mut sys::shf_error,
) -> i32 {
    // SAFETY: as the caller promises. Only shared references are made of the context.
    let (source, url, object, flags, error) = unsafe {
        let source = &*context.cast::<Context>();
        (source, CStr::from_ptr(url), &mut *object, &mut *flags, &mut *error)
    };
    let opened = run(error, || {
        let url = url.to_str().map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "the URL is not valid UTF-8")
        })?;
        let opened = source.open(url)?;
        let sequential = opened.is_sequential();
        Ok((opened, sequential))
    });
    match opened {
        Ok((opened, sequential)) => {
            *flags = if sequential { sys::SHF_SOURCE_SEQUENTIAL as u32 } else { 0 };
            *object = Box::into_raw(Box::new(opened)).cast();
            sys::SHF_OK
        }
        Err(code) => code,
    }
}

/// # Safety
/// `object` is what `open` gave, and so with all that follow; `size` and `error` are writable.
unsafe extern "C" fn size(object: *mut c_void, size: *mut u64, error: *mut sys::shf_error) -> i32 {
    // SAFETY: as the caller promises.
    let (object, size, error) = unsafe { (&*object.cast::<Object>(), &mut *size, &mut *error) };
    match run(error, || Ok(object.size())) {
        Ok(known) => {
            *size = known.unwrap_or(u64::MAX);
            sys::SHF_OK
        }
        Err(code) => code,
    }
}

/// # Safety
/// `text` has `room` bytes.
unsafe extern "C" fn version(
    object: *mut c_void,
    text: *mut c_char,
    room: usize,
    error: *mut sys::shf_error,
) -> i32 {
    // SAFETY: as the caller promises; the library has zeroed the text.
    let (object, text, error) = unsafe {
        let text = std::slice::from_raw_parts_mut(text, room);
        (&*object.cast::<Object>(), text, &mut *error)
    };
    match run(error, || Ok(object.version())) {
        Ok(version) => {
            let last = text.len() - 1;
            for (to, from) in text[..last].iter_mut().zip(version.bytes()) {
                *to = from as c_char;
            }
            sys::SHF_OK
        }
        Err(code) => code,
    }
}

/// # Safety
/// `out` has `size` bytes.
unsafe extern "C" fn read_at(
    object: *mut c_void,
    offset: u64,
    out: *mut u8,
    size: usize,
    error: *mut sys::shf_error,
) -> i64 {
    // SAFETY: as the caller promises. Safe code may read what it is given to write to: so the
    // bytes are written before.
    let (object, out, error) = unsafe {
        std::ptr::write_bytes(out, 0, size);
        let out = std::slice::from_raw_parts_mut(out, size);
        (&*object.cast::<Object>(), out, &mut *error)
    };
    match run(error, || object.read_at(offset, out)) {
        Ok(count) => i64::try_from(count).unwrap_or(i64::MAX),
        Err(code) => code.into(),
    }
}

/// # Safety
/// It is the last call for the object.
unsafe extern "C" fn close(object: *mut c_void) {
    // SAFETY: as the caller promises.
    let object = unsafe { Box::from_raw(object.cast::<Object>()) };
    let _ = catch_unwind(AssertUnwindSafe(move || drop(object)));
}

/// # Safety
/// It is the last call for the `Context`.
unsafe extern "C" fn release(context: *mut c_void) {
    // SAFETY: as the caller promises.
    let context = unsafe { Box::from_raw(context.cast::<Context>()) };
    let _ = catch_unwind(AssertUnwindSafe(move || drop(context)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::ptr;

    // These run in Miri too: they call the functions as the library does.

    fn no_error() -> sys::shf_error {
        sys::shf_error { code: 0, os_error: 0, offset: 0, message: [0; 1008] }
    }

    fn text(chars: &[c_char]) -> String {
        chars.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect()
    }

    struct Odd(Arc<[u8]>);

    impl SourceObject for Odd {
        fn size(&self) -> Option<u64> {
            None
        }

        fn version(&self) -> String {
            "v".repeat(300)
        }

        fn is_sequential(&self) -> bool {
            true
        }

        fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
            assert!(offset < 4, "there is nothing at {offset}");
            self.0.read_at(offset, out)
        }
    }

    impl Drop for Odd {
        fn drop(&mut self) {
            panic!("nobody hears this");
        }
    }

    /// Calls `open`, which must not unwind.
    fn opened(
        context: *mut c_void,
        url: &str,
        error: &mut sys::shf_error,
    ) -> (i32, u32, *mut c_void) {
        let url = CString::new(url).unwrap();
        let (mut object, mut flags) = (ptr::null_mut(), 7);
        // SAFETY: a Context, and places to write to.
        let code = unsafe { open(context, url.as_ptr(), &mut object, &mut flags, error) };
        (code, flags, object)
    }

    #[test]
    fn an_object_lives_from_open_to_close() {
        let bytes: Arc<[u8]> = Arc::from(*b"abcd");
        let inner = Arc::clone(&bytes);
        let source = move |url: &str| -> io::Result<Box<dyn SourceObject>> {
            match url {
                "db://bytes" => Ok(Box::new(Arc::clone(&inner))),
                "db://odd" => Ok(Box::new(Odd(Arc::clone(&inner)))),
                _ => Err(io::Error::from_raw_os_error(2)),
            }
        };
        let context: *mut Context = Box::into_raw(Box::new(Arc::new(source)));
        let context: *mut c_void = context.cast();
        let mut error = no_error();
        let (mut known, mut version_text, mut out) = (0, [0; 256], [9; 8]);

        let (code, flags, object) = opened(context, "db://bytes", &mut error);
        assert_eq!((code, flags), (sys::SHF_OK, 0));
        // SAFETY: an object of open(), and places to write to.
        unsafe {
            assert_eq!(size(object, &mut known, &mut error), sys::SHF_OK);
            assert_eq!(version(object, version_text.as_mut_ptr(), 256, &mut error), sys::SHF_OK);
            assert_eq!(read_at(object, 1, out.as_mut_ptr(), 2, &mut error), 2);
            assert_eq!(read_at(object, u64::MAX, out[4..].as_mut_ptr(), 4, &mut error), 0);
            close(object);
        }
        assert_eq!((known, text(&version_text)), (4, String::new()));
        assert_eq!(out, [b'b', b'c', 9, 9, 0, 0, 0, 0]);

        let (code, flags, object) = opened(context, "db://odd", &mut error);
        assert_eq!((code, flags), (sys::SHF_OK, sys::SHF_SOURCE_SEQUENTIAL as u32));
        // SAFETY: as above.
        unsafe {
            assert_eq!(size(object, &mut known, &mut error), sys::SHF_OK);
            assert_eq!(version(object, version_text.as_mut_ptr(), 256, &mut error), sys::SHF_OK);
            let code = read_at(object, 4, out.as_mut_ptr(), 8, &mut error);
            assert_eq!(code, i64::from(sys::SHF_E_USAGE));
            close(object);
        }
        assert_eq!((known, text(&version_text).len()), (u64::MAX, 255));
        assert_eq!(text(&error.message), "the source panicked: there is nothing at 4");

        let mut error = no_error();
        let (code, _, object) = opened(context, "db://none", &mut error);
        assert_eq!((code, error.os_error, object), (sys::SHF_E_IO, 2, ptr::null_mut()));
        assert_eq!(Arc::strong_count(&bytes), 2);
        // SAFETY: the last call.
        unsafe { release(context) };
        assert_eq!(Arc::strong_count(&bytes), 1);
    }
}
