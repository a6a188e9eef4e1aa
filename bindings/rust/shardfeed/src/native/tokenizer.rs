//! The tokenizer of the program, as the library calls it.

use std::any::Any;
use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use super::{checked, lent, panic_text, sys, write_message};
use crate::error::Result;
use crate::name::Name;
use crate::tokenizer::{Tokenize, Tokenizer};

type Context = Arc<Tokenize>;

/// Makes a tokenizer serve the streams that are opened with these options.
///
/// # Safety
/// `options` is a shf_options that nobody else uses.
pub(super) unsafe fn set(options: *mut sys::shf_options, tokenizer: &Tokenizer) -> Result<()> {
    let table = sys::shf_tokenizer {
        struct_size: size_of::<sys::shf_tokenizer>(),
        tokenize: Some(tokenize),
        release: Some(release),
    };
    let context: *mut Context = Box::into_raw(Box::new(Arc::clone(&tokenizer.0)));
    // SAFETY: as the caller promises; the table is borrowed for the call.
    let set = checked(|error| unsafe {
        sys::shf_options_set_tokenizer(options, &table, context.cast(), error)
    });
    if set.is_err() {
        // SAFETY: made above, and not taken.
        drop(unsafe { Box::from_raw(context) });
    }
    set.map(|_| ())
}

/// A text, and the key of its sample.
#[derive(Clone, Copy)]
struct Text<'a> {
    text: &'a [u8],
    key: Name<'a>,
}

/// The code of a panic. The library does not look for the text, as it does for one of an error.
fn panicked(payload: &(dyn Any + Send), key: Name<'_>, error: &mut sys::shf_error) -> i32 {
    let text = panic_text(payload);
    write_message(error, &format!("the tokenizer panicked at the sample \"{key}\": {text}"));
    sys::SHF_E_USAGE
}

/// The code of an error.
fn failed(raised: Box<dyn std::error::Error + Send + Sync>, error: &mut sys::shf_error) -> i32 {
    let of_system = raised.downcast_ref::<io::Error>();
    error.os_error = of_system.and_then(io::Error::raw_os_error).unwrap_or(0);
    let no_memory = of_system.is_some_and(|raised| raised.kind() == io::ErrorKind::OutOfMemory);
    // What the user has made of its text and of its end may panic too.
    let text = catch_unwind(AssertUnwindSafe(move || raised.to_string())).unwrap_or_default();
    write_message(error, &text);
    if no_memory {
        sys::SHF_E_NOMEM
    } else {
        sys::SHF_E_FORMAT
    }
}

/// Gives the tokens of each text to `add`, until that fails or a text does. Nothing unwinds.
fn make<'a>(
    function: &Tokenize,
    texts: impl Iterator<Item = Text<'a>>,
    error: &mut sys::shf_error,
    mut add: impl FnMut(&[i32], &mut sys::shf_error) -> i32,
) -> i32 {
    let mut tokens = Vec::new();
    for Text { text, key } in texts {
        tokens.clear();
        let made =
            catch_unwind(AssertUnwindSafe(|| function(std::str::from_utf8(text)?, &mut tokens)));
        let code = match made {
            Ok(Ok(())) => add(&tokens, error),
            Ok(Err(raised)) => failed(raised, error),
            Err(payload) => panicked(&*payload, key, error),
        };
        if code != sys::SHF_OK {
            return code;
        }
    }
    sys::SHF_OK
}

/// # Safety
/// `context` is a `Context`; the others are what the library gives to `tokenize` of shf_tokenizer.
unsafe extern "C" fn tokenize(
    context: *mut c_void,
    texts: *const sys::shf_text,
    count: usize,
    tokens: *mut sys::shf_tokens,
    error: *mut sys::shf_error,
) -> i32 {
    // SAFETY: as the caller promises. Only shared references are made of the context.
    let (function, texts, error) = unsafe {
        let texts = std::slice::from_raw_parts(texts, count);
        (&*context.cast::<Context>(), texts, &mut *error)
    };
    // SAFETY: borrowed for the call.
    let texts = texts
        .iter()
        .map(|one| unsafe { Text { text: lent(one.text), key: Name::new(lent(one.key)) } });
    make(&**function, texts, error, |ids, error| {
        let count = ids.len() as u64;
        // SAFETY: the tokens and their count, of one text; on the thread of the call.
        unsafe { sys::shf_tokens_add(tokens, ids.as_ptr(), &count, 1, error) }
    })
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
    use std::error::Error;
    use std::ffi::c_char;

    // These run in Miri too: the function is called as the library calls it.

    struct Lost;

    impl Drop for Lost {
        fn drop(&mut self) {
            panic!("nobody hears this");
        }
    }

    fn bytes_of(text: &str, tokens: &mut Vec<i32>) -> Result<(), Box<dyn Error + Send + Sync>> {
        tokens.extend(text.bytes().map(i32::from));
        match text {
            "bad" => Err("so it is".into()),
            "system" => Err(io::Error::from_raw_os_error(2).into()),
            "memory" => Err(io::Error::from(io::ErrorKind::OutOfMemory).into()),
            "panic" => panic!("I do not like {text}"),
            _ => Ok(()),
        }
    }

    /// The code, the error of the system, what is said, and the tokens of each text.
    fn made(texts: &[&[u8]]) -> (i32, i32, String, Vec<Vec<i32>>) {
        let mut error = sys::shf_error { code: 0, os_error: 0, offset: 0, message: [0; 1008] };
        let mut given = Vec::new();
        let texts = texts.iter().map(|text| Text { text, key: Name::from("a/1") });
        let code = make(&bytes_of, texts, &mut error, |tokens, _| {
            given.push(tokens.to_vec());
            match tokens {
                [35, ..] => sys::SHF_E_LIMIT,
                _ => sys::SHF_OK,
            }
        });
        let said: &[c_char] = &error.message;
        let said = said.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect();
        (code, error.os_error, said, given)
    }

    #[test]
    fn each_text_has_its_own_tokens() {
        let tokens = vec![vec![97, 98], vec![], vec![99]];
        let wanted = (sys::SHF_OK, 0, String::new(), tokens);
        assert_eq!(made(&[b"ab", b"", b"c"]), wanted);
    }

    #[test]
    fn what_a_text_fails_with_ends_the_call() {
        let before = vec![vec![97]];
        let format = |said: &str| (sys::SHF_E_FORMAT, 0, said.to_owned(), before.clone());
        assert_eq!(made(&[b"a", b"bad", b"c"]), format("so it is"));
        let (code, number, _, given) = made(&[b"a", b"system", b"c"]);
        assert_eq!((code, number, given), (sys::SHF_E_FORMAT, 2, before.clone()));
        assert_eq!(made(&[b"memory"]).0, sys::SHF_E_NOMEM);
        let panicked =
            "the tokenizer panicked at the sample \"a/1\": I do not like panic".to_owned();
        assert_eq!(made(&[b"a", b"panic"]), (sys::SHF_E_USAGE, 0, panicked, before.clone()));
        assert!(made(&[b"a", b"\xff"]).2.starts_with("invalid utf-8"));
        let (code, _, _, given) = made(&[b"a", b"#", b"c"]);
        assert_eq!((code, given), (sys::SHF_E_LIMIT, vec![vec![97], vec![35]]));
    }

    #[test]
    fn the_end_of_a_tokenizer_does_not_unwind() {
        let lost = Lost;
        let function = move |_: &str, _: &mut Vec<i32>| {
            let _ = &lost;
            Ok(())
        };
        let context: *mut Context = Box::into_raw(Box::new(Arc::new(function)));
        // SAFETY: the last call.
        unsafe { release(context.cast()) };
    }
}
