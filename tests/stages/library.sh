# shellcheck shell=bash

c_users() { tests/c/users.sh "$build/installed" "$build/c" "$1"; }
library_checks() {
    meson_tests "library tests" "$plain" unit api fuzz-replay
    meson_tests "slow library tests" "$plain" slow
    check "the C examples of the pages and examples/c" c_users examples
    check "static linking as pkg-config says" c_users statically
    check "find_package(Shardfeed) of CMake" c_users cmake
}
