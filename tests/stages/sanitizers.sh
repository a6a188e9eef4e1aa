# shellcheck shell=bash

# test_programs FOLDER SUITE: the programs of all tests but those of SUITE and of the slow suites.
test_programs() {
    python3 - "$1" "$2" <<'PY'
import json
import os
import sys

folder, left_out = sys.argv[1:]
with open(f"{folder}/meson-info/intro-tests.json") as file:
    tests = json.load(file)
paths = {
    os.path.relpath(test["cmd"][0], folder)
    for test in tests
    if not {suite.rpartition(":")[2] for suite in test["suite"]} & {left_out, "slow", "campaign"}
}
print(*sorted(path for path in paths if not path.startswith("..")))
PY
}

# -g1: reports still have files and lines, and the objects of the library a fifth (GCC) to half (Clang) of the size.
sanitizer_build() { # NAME SANITIZERS MESON-OPTION...
    check "configure with $2" configure "$build/$1" -Db_sanitize="$2" -Db_lundef=false -Db_pch=true \
        -Dbuildtype=plain -Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 -Dman=disabled "${@:3}"
}
# In CI nobody builds again or looks at a build when nothing failed so far.
sanitized_tests() { # NAME SANITIZERS SUITE...
    meson_tests "library tests under $2" "$build/$1" "${@:3}"
    if [ "${CI:-}" = true ] && [ "$failed" -eq 0 ]; then rm -rf "${build:?}/$1"; fi
}

# With Clang, and all of it: what Clang warns of is seen in the same build. The compiler cache may not keep precompiled
# headers, so that what is compiled with one, the tests, is compiled again in every checkout: one of Clang names the
# files of its checkout and their times, and fails in another.
address_build() {
    go_last
    export CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime
    CC="ccache clang" CXX="ccache clang++" sanitizer_build asan address,undefined -Dwerror=true
    check "build with Clang and address,undefined, no warnings" compile "$build/asan"
}
# With GCC, which warns of code that ThreadSanitizer made: without -Dwerror.
thread_build() {
    go_last
    sanitizer_build tsan thread
    # shellcheck disable=SC2046
    check "build with thread" compile "$build/tsan" $(test_programs "$build/tsan" single_threaded)
}
address_checks() {
    export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    export LSAN_OPTIONS=suppressions=$PWD/tests/leak_sanitizer.supp:print_suppressions=0
    sanitized_tests asan address,undefined unit api fuzz-replay
}
thread_checks() {
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/thread_sanitizer.supp
    sanitized_tests tsan thread unit api fuzz-replay -single_threaded
}
