//! Declarations of libshardfeed, as its header has them, comments included.
//!
//! The crate `shardfeed` is the safe interface. How the library is found:
//!
//! 1. `SHARDFEED_LIB_DIR` in the environment: the folder of `libshardfeed.so` or, when it has no
//!    shared one, `libshardfeed.a`.
//! 2. With the feature `vendored`: built from the sources with Meson and linked statically.
//!    `SHARDFEED_MESON_ARGS` are further arguments of `meson setup`, such as `-Dwebp=disabled`. As
//!    features add up and cannot be switched off, `SHF_NO_VENDOR=1` refuses all of that.
//! 3. `pkg-config` (or `PKG_CONFIG`), of the versions that have these declarations.
//!
//! Crates that depend on this one get `DEP_SHARDFEED_LIB_DIR`, the folder of the library, in their
//! build scripts. A program that uses a shared library outside the system's folders needs it as
//! run path or in `LD_LIBRARY_PATH`.

#![no_std]
#![allow(non_camel_case_types)]
#![allow(rustdoc::broken_intra_doc_links)]

mod bindings;

pub use bindings::*;
