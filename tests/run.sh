#!/usr/bin/env bash
# Installs what the tests need, builds, and passes every test. The last line is "N passed, N failed".
#   tests/run.sh          everything
#   tests/run.sh --fast   without the slow suites and the sanitizer builds
set -uo pipefail
cd "$(dirname "$0")/.."
fast=false
[ "${1:-}" = --fast ] && fast=true

passed=0 failed=0
build=$PWD/build-tests
mkdir -p "$build"
output=$build/output # of the command that runs
export CCACHE_DISABLE=${CCACHE_DISABLE:-}

# check NAME COMMAND...: one test; its output is shown when it fails.
check() {
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$output" 2>&1; then
        passed=$((passed + 1))
        echo "ok     $name ($((SECONDS - start)) s)"
    else
        failed=$((failed + 1))
        echo "FAILED $name ($((SECONDS - start)) s)"
        tail -n 100 "$output" | sed 's/^/    /'
    fi
}

# need NAME COMMAND...: without it nothing below makes sense.
need() {
    local before=$failed
    check "$@"
    [ "$failed" -eq "$before" ] || finish
}

# aside NAME FUNCTION: runs checks beside those that follow, for what waits for the network or keeps
# one core busy. join NAME waits for them, shows what they said and counts them.
declare -A asides
aside() {
    (
        output=$build/output-$1 passed=0 failed=0
        "$2" >"$output.said" 2>&1
        echo "$passed $failed" >"$output.counts"
    ) &
    asides[$1]=$!
}
join() {
    local ok=0 bad=1
    wait "${asides[$1]}" && read -r ok bad <"$build/output-$1.counts"
    cat "$build/output-$1.said"
    passed=$((passed + ok))
    failed=$((failed + bad))
    [ "$bad" -eq 0 ]
}

finish() {
    echo "$passed passed, $failed failed"
    exit $((failed > 0))
}

# meson_tests NAME FOLDER SUITE...: runs suites and adds up what they count; "-SUITE" leaves one out.
meson_tests() {
    local name=$1 folder=$2 start=$SECONDS
    shift 2
    local suites=()
    for suite in "$@"; do
        case $suite in
            -*) suites+=(--no-suite "${suite#-}") ;;
            *) suites+=(--suite "$suite") ;;
        esac
    done
    meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 4 "${suites[@]}" \
        >"$output" 2>&1
    local status=$?
    local ok bad
    ok=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$output" | tail -n 1)
    bad=$(sed -n -e 's/^Fail: *\([0-9]*\).*/\1/p' -e 's/^Timeout: *\([0-9]*\).*/\1/p' \
        -e 's/^Unexpected Pass: *\([0-9]*\).*/\1/p' "$output" | awk '{n += $1} END {print n + 0}')
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi # it did not even run
    if [ "$status" -eq 0 ] && [ "${ok:-0}" -eq 0 ]; then bad=1; fi # or ran nothing
    passed=$((passed + ${ok:-0}))
    failed=$((failed + bad))
    echo "$name: ${ok:-0} ok, $bad failed ($((SECONDS - start)) s)"
    [ "$bad" -eq 0 ] || grep -v '^ *[0-9]*/[0-9]* .* OK ' "$output" | tail -n 200 | sed 's/^/    /'
}

# pytests NAME ARGUMENTS...: the same for pytest.
pytests() {
    local name=$1 start=$SECONDS
    shift
    "$python" -m pytest -q -p no:cacheprovider --junit-xml "$output.xml" "$@" \
        >"$output" 2>&1
    local status=$?
    read -r ok bad < <("$python" - "$output.xml" <<'PY'
import sys
import xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()[0]
bad = int(suite.get("failures")) + int(suite.get("errors"))
print(int(suite.get("tests")) - bad - int(suite.get("skipped")), bad)
PY
    ) || { ok=0 bad=1; }
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + ok))
    failed=$((failed + bad))
    echo "$name: $ok ok, $bad failed ($((SECONDS - start)) s)"
    [ "$bad" -eq 0 ] || tail -n 150 "$output" | sed 's/^/    /'
}

configure() { # FOLDER MESON-OPTION...
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then meson setup --reconfigure "$folder" "$@"; else meson setup "$folder" "$@"; fi
}
compile() { ninja -C "$1" "${@:2}"; }

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

# ---- The library --------------------------------------------------------------------------------

need "install packages" scripts/install_dependencies.sh build test
# PyPI's packages come while the library is built.
environment=$build/venv
python=$environment/bin/python
make_environment() {
    [ -x "$python" ] || python3 -m venv "$environment" || return 1
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r tests/python/requirements.txt || return 1
    # The peers of the benchmark, and PyTorch.
    $fast || "$environment/bin/pip" install --quiet --disable-pip-version-check \
        -r tests/bench/requirements.txt -r tests/python/requirements-torch.txt
}
environment_checks() { check "Python environment" make_environment; }
aside environment environment_checks

plain=$build/plain
# A precompiled header saves a minute where no compiler cache does better. Files of the library that
# include less than they use are found by the build of the Debian packages, which has none.
pch=-Db_pch=false
[ "${CI:-}" = true ] && pch=-Db_pch=true
need "configure" configure "$plain" -Dwerror=true -Ddefault_library=both "$pch" --prefix "$build/installed" --libdir lib
need "build" compile "$plain"
meson_tests "library tests" "$plain" unit api fuzz-replay
$fast || meson_tests "slow library tests" "$plain" slow

check "install" meson install -C "$plain" --quiet
export PKG_CONFIG_PATH=$build/installed/lib/pkgconfig

# ---- C ------------------------------------------------------------------------------------------

c_users() { tests/c/users.sh "$build/installed" "$build/c" "$1"; }
check "the C examples of README, examples/c and docs/c.md" c_users examples
check "static linking as pkg-config says" c_users statically
check "find_package(Shardfeed) of CMake" c_users cmake
if ! $fast; then
    check "a subproject of a Meson project, and -static" c_users subproject
    check "Debian packages, lintian, and their use" tests/packages.sh "$build/packages"
fi

# ---- Other builds -------------------------------------------------------------------------------

if ! $fast; then
    # -g1: reports still have files and lines, and the objects of the library a fifth (GCC) to half (Clang) of the size.
    sanitizer_build() { # NAME SANITIZERS MESON-OPTION...
        failed_before=$failed
        check "configure with $2" configure "$build/$1" -Db_sanitize="$2" -Db_lundef=false \
            -Dbuildtype=plain -Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1 -Dman=disabled "${@:3}"
    }
    # In CI nobody builds again or looks at a build that passed, and the disk is small.
    done_with() { # NAME
        if [ "${CI:-}" = true ] && [ "$failed" -eq "$failed_before" ]; then rm -rf "${build:?}/$1"; fi
    }
    export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

    # With Clang, and all of it: what Clang warns of is seen in the same build.
    CC=clang CXX=clang++ sanitizer_build asan address,undefined -Dwerror=true "$pch"
    check "build with Clang and address,undefined, no warnings" compile "$build/asan"
    meson_tests "library tests under address,undefined" "$build/asan" unit api fuzz-replay
    done_with asan

    # With GCC, which warns of code that ThreadSanitizer made: without -Dwerror.
    sanitizer_build tsan thread "$pch"
    # shellcheck disable=SC2046
    check "build with thread" compile "$build/tsan" $(test_programs "$build/tsan" single_threaded)
    meson_tests "library tests under thread" "$build/tsan" unit api fuzz-replay -single_threaded
    done_with tsan
fi

# ---- The Python package -------------------------------------------------------------------------

install_wheel() { # PYTHON
    "$1" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall \
        "$build"/wheel/shardfeed-*.whl
}
build_wheel() {
    rm -rf "$build/wheel"
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
        --config-settings "setup-args=$pch" --wheel-dir "$build/wheel" .
}
join environment || finish
need "pip wheel ." build_wheel
need "pip install" install_wheel "$python"
check "the command shardfeed" "$environment/bin/shardfeed" plan '{000..007}.tar' world_size=2 lanes=4

# ---- Julia --------------------------------------------------------------------------------------

# The tests of Julia run in the interpreter, on one core: see docs/julia.md.
run_julia() {
    SHARDFEED_LIB=$plain/libshardfeed.so.0 JULIA_LOAD_PATH=$PWD/bindings/julia:@stdlib \
        JULIA_DEPOT_PATH=$build/julia JULIA_NUM_THREADS=2 julia --startup-file=no "$@"
}
interpreted() { run_julia --compile=min --compiled-modules=no "$@"; }
julia_checks() {
    check "Julia tests" interpreted bindings/julia/ShardFeed/test/runtests.jl
    check "Julia, compiled" run_julia bindings/julia/ShardFeed/test/jit.jl
    check "conformance in Julia" interpreted bindings/julia/ShardFeed/test/conformance.jl
}

# ---- Rust ---------------------------------------------------------------------------------------

rust_tools() { # of rustup, or of Debian
    command -v cargo >/dev/null || scripts/install_dependencies.sh rust
}
[ -d "$HOME/.cargo/bin" ] && export PATH=$PATH:$HOME/.cargo/bin
check "Rust" rust_tools
in_rust() {
    (cd bindings/rust && CARGO_TARGET_DIR=$build/rust LD_LIBRARY_PATH=$build/installed/lib "$@")
}
# cargo_tests NAME ARGUMENTS...: adds up what `cargo ARGUMENTS` counts.
cargo_tests() {
    local name=$1 start=$SECONDS
    shift
    in_rust cargo "$@" >"$output" 2>&1
    local status=$?
    local ok bad
    read -r ok bad < <(awk '/^test result:/ {ok += $4; bad += $6} END {print ok + 0, bad + 0}' "$output")
    if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; }; then bad=1; fi
    passed=$((passed + ok))
    failed=$((failed + bad))
    echo "$name: $ok ok, $bad failed ($((SECONDS - start)) s)"
    [ "$bad" -eq 0 ] || grep -v '^test .* ok$' "$output" | tail -n 150 | sed 's/^/    /'
}
declarations() { bindings/rust/shardfeed-sys/generate.sh | diff bindings/rust/shardfeed-sys/src/bindings.rs -; }
rust_checks() {
    check "declarations in Rust are those of the header (bindgen)" declarations
    check "cargo fmt" in_rust cargo fmt --check
    check "clippy" in_rust cargo clippy --quiet --locked --all-targets --features ndarray,serde -- -D warnings
    check "rustdoc without the library" in_rust env DOCS_RS=1 PKG_CONFIG_PATH= RUSTDOCFLAGS="-D warnings" \
        cargo doc --quiet --locked --no-deps --features ndarray,serde
    cargo_tests "Rust tests" test --locked --no-fail-fast --features ndarray,serde
    if ! $fast; then
        oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' bindings/rust/Cargo.toml)
        if rustup toolchain install "$oldest" --profile minimal --component rustfmt \
            >"$output" 2>&1; then
            cargo_tests "Rust tests with the oldest Rust, $oldest" "+$oldest" test --locked --no-fail-fast \
                --tests --target-dir "$build/rust-$oldest"
        else
            echo "left out: Rust tests with the oldest Rust, $oldest: rustup cannot install it"
        fi
        # Not optimized: this is about how it is built.
        check "the Rust crate that builds the library" in_rust env PKG_CONFIG_PATH= LD_LIBRARY_PATH= \
            SHARDFEED_MESON_ARGS="-Doptimization=0 -Db_pch=true" cargo test --locked --features vendored --test archive \
            --target-dir "$build/rust-vendored"
        rm -rf "$build/rust-vendored"
        if in_rust cargo +nightly miri --version >/dev/null 2>&1; then
            cargo_tests "Rust tests in Miri" +nightly miri test --locked -p shardfeed --lib \
                --target-dir "$build/rust-miri"
        else
            echo "left out: Rust tests in Miri: rustup has no nightly toolchain with it"
        fi
    fi
}

# ---- Python, and beside it what else uses the library --------------------------------------------

# The oldest PyTorch that shardfeed.torch is for: the one of Debian 12, in Debian's own Python.
old=$build/venv-old
make_old_environment() {
    scripts/install_dependencies.sh test-old || return 1
    [ -x "$old/bin/python" ] || /usr/bin/python3 -m venv --system-site-packages "$old" || return 1
    # The wheel is made once, unless this is another version of Python.
    install_wheel "$old/bin/python" ||
        "$old/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall . ||
        return 1
    "$old/bin/python" -c 'import numpy, PIL, torch' # without them tests would be skipped
}
old_checks() { python=$old/bin/python pytests "Python tests with Debian's PyTorch" -k "torch or not slow"; }
bench_smoke() {
    "$python" tests/bench/run.py --build "$plain" --scale 0.01 --repeat 1 --python "$python" \
        --json "$build/bench.json" &&
        "$python" tests/bench/random_access.py --scale 0.01 --repeat 1 --build "$plain" \
            --json "$build/random.json" &&
        "$python" tests/bench/batches.py --scale 0.01 --repeat 1 --build "$plain" \
            --python "$python" --reader c,python --json "$build/batches.json" &&
        "$python" tests/bench/order.py --build "$plain" --scale 0.2 --repeat 1 &&
        "$python" tests/bench/draw.py "$build/bench.json" "$build/batches.json" "$build/speed.svg"
}
beside_python() {
    $fast || julia_checks
    rust_checks
    $fast || old_checks
    $fast || check "benchmark, small" bench_smoke
    pytests "Packaging tests" tests/packaging
}
if ! $fast; then
    check "install Julia" scripts/install_dependencies.sh julia
    check "environment with Debian's PyTorch" make_old_environment
fi
aside beside beside_python

if $fast; then pytests "Python tests" -m "not slow"; else pytests "Python tests"; fi
check "the same samples as Python's tarfile" "$python" tests/differential/tarfile_oracle.py
check "the same order as a second writing of it" "$python" tests/differential/order_oracle.py
go=" (not with Go's archive/zip: go is not installed)"
command -v go >/dev/null && go=" and Go's archive/zip"
check "the same members as Python's zipfile$go" "$python" tests/differential/zipfile_oracle.py

# ---- The sources --------------------------------------------------------------------------------

tracked() { git ls-files -- "$@"; }
formatted() { tracked '*.cpp' 'src/*.h' 'tests/*.h' | xargs clang-format --dry-run --Werror; }
check "clang-format" formatted
check "options in the README" "$python" scripts/option_table.py
check "ruff" "$environment/bin/ruff" check .
check "ruff format" "$environment/bin/ruff" format --check .
check "mypy" "$environment/bin/mypy" bindings/python/shardfeed

join beside
finish
