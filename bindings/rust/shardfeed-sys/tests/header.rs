//! The declarations are those of the header: the C compiler checks every constant and layout, and
//! the lists of functions are the same. (That their arguments are too is checked with bindgen by
//! generate.sh.)

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::{align_of, size_of, MaybeUninit};
use std::process::{Command, Stdio};
use std::ptr::addr_of;

use shardfeed_sys::*;

const BINDINGS: &str = include_str!("../src/bindings.rs");

/// Fails with what the compiler says unless it takes `code` after the header.
fn compile(code: &str) {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/vendor/include");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=c11", "-fsyntax-only", "-x", "c", "-I", include, "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    let source = format!("#include <shardfeed.h>\n{code}");
    let mut input = compiler.stdin.take().expect("a pipe");
    input.write_all(source.as_bytes()).expect("it reads");
    drop(input);
    let done = compiler.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

#[test]
fn constants_have_the_values_of_the_header() {
    let mut code = String::new();
    let mut count = 0;
    for line in BINDINGS.lines() {
        let Some(rest) = line.strip_prefix("pub const ") else {
            continue;
        };
        // SHF_STRLEN is no number of the header's own.
        let Some((name, value)) = rest.split_once(": i32 = ") else {
            assert!(rest.starts_with("SHF_STRLEN: "), "{rest} is no i32");
            continue;
        };
        let value = value.trim_end_matches(';');
        writeln!(code, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
        count += 1;
    }
    assert!(count > 100, "only {count} constants");
    compile(&code);
}

macro_rules! layout {
    ($code:ident, $name:ident: $($field:ident),*) => {
        let value = MaybeUninit::<$name>::uninit();
        writeln!($code, "_Static_assert(sizeof({0}) == {1}, \"size\");", stringify!($name), size_of::<$name>()).unwrap();
        writeln!($code, "_Static_assert(_Alignof({0}) == {1}, \"alignment\");", stringify!($name), align_of::<$name>()).unwrap();
        $(
            // SAFETY: no reference is made and nothing is read.
            let place = unsafe { addr_of!((*value.as_ptr()).$field) } as usize;
            writeln!(
                $code, "_Static_assert(offsetof({0}, {1}) == {2}, \"{1}\");",
                stringify!($name), stringify!($field), place - value.as_ptr() as usize
            ).unwrap();
        )*
    };
}

#[test]
fn structs_have_the_layout_of_the_header() {
    let mut code = String::new();
    layout!(code, shf_error: code, os_error, offset, message);
    layout!(code, shf_bytes: data, size);
    layout!(code, shf_text: text, key, url);
    layout!(code, shf_tokenizer: struct_size, tokenize, release);
    layout!(code, shf_array: data, size, offsets, shapes, shape, ndim, row_ndim, dtype, kind);
    compile(&code);
}

#[test]
fn all_functions_of_the_header_are_declared() {
    let header = include_str!("../vendor/include/shardfeed.h");
    // A declaration starts in the first column; the lines of comments with " *".
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| {
            let start = line.find("shf_").filter(|_| line.contains('('))?;
            let name = &line[..line.find('(')?];
            Some(name.rsplit([' ', '*']).next().unwrap_or(&name[start..]))
        })
        .collect();
    let bound: BTreeSet<&str> = BINDINGS
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub fn "))
        .filter_map(|line| line.split('(').next())
        .collect();
    assert!(bound.len() > 70, "only {} functions", bound.len());
    assert_eq!(declared, bound);
}

#[test]
fn the_crate_has_the_version_of_the_header() {
    let header = [SHF_VERSION_MAJOR, SHF_VERSION_MINOR, SHF_VERSION_PATCH];
    assert_eq!(header.map(|n| n.to_string()).join("."), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_library_that_is_linked_is_of_this_version() {
    // SAFETY: takes nothing.
    let version = unsafe { shf_version() };
    assert_eq!(version >> 16, SHF_VERSION_MAJOR as u32);
    assert_eq!(version >> 8 & 0xff, SHF_VERSION_MINOR as u32);
}
