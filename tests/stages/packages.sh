# shellcheck shell=bash
# The library as others build it. Not optimized: this is about how it is built.

package_checks() {
    check "a subproject of a Meson project, and -static" c_users subproject
    check "Debian packages, lintian, and their use" tests/packages.sh "$build/packages"
    check "Rust" rust_tools
    check "the Rust crate that builds the library" in_rust env PKG_CONFIG_PATH= LD_LIBRARY_PATH= \
        SHARDFEED_MESON_ARGS="-Doptimization=0 -Dunity=off" cargo test --locked --features vendored \
        --test archive --target-dir "$build/rust-vendored"
    rm -rf "$build/rust-vendored"
    pytests "packaging tests" "$python" 1 tests/packaging
}
