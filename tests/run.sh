#!/usr/bin/env bash
# Installs what the tests need, builds, and passes every test. The last line is "N passed, N failed".
#   tests/run.sh             everything
#   tests/run.sh STAGE...    some of it, together with what it is built on:
#       library       the library's own tests, in C++ and C, and its use by C programs
#       sanitizers    the same tests with ASan + UBSan and with TSan
#       packages      a subproject of Meson, Debian packages, the Rust crate that builds the library
#       python        the Python package with the newest packages of PyPI, and with Debian's
#       command       the command shardfeed
#       julia, rust   these bindings
#       bench         the benchmarks, small: that they run, not how fast
#       docs          what is written down of options and types
#       lint          formats and types of the sources
set -uo pipefail
cd "$(dirname "$0")/.."

all="library sanitizers packages python command julia rust bench docs lint"
stages=" ${*:-$all} "
for stage in $stages; do
    if [[ " $all " != *" $stage "* ]]; then
        echo "no stage $stage; the stages: $all" >&2
        exit 2
    fi
done
# wants STAGE...: whether one of them was asked for.
wants() {
    local stage
    for stage in "$@"; do [[ $stages == *" $stage "* ]] && return; done
    return 1
}

build=$PWD/build-tests
mkdir -p "$build"
# The library is compiled several times, for some with the same flags. The cache is the one of the
# user: another checkout then compiles only what is different there.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
[ -d "$HOME/.cargo/bin" ] && export PATH=$PATH:$HOME/.cargo/bin

for file in counting building library sanitizers packages python command julia rust bench sources; do
    # shellcheck source=/dev/null
    source "tests/stages/$file.sh"
done

need "install packages" scripts/install_dependencies.sh build test
# What comes from a network does so while the library is built.
wants python packages command bench docs lint && aside environment environment_checks
wants python && aside old_environment old_environment_checks
wants julia && aside julia_packages julia_package_checks
wants python && aside store_servers store_server_checks

wants library packages python command julia rust bench docs && build_library
join environment || finish
wants python bench docs && wheel_checks
join old_environment
join store_servers
join julia_packages

# Each of these keeps one core busy and waits now and then.
beside() {
    go_last
    wants packages && package_checks
    wants julia && julia_checks
    wants rust && rust_checks
    wants lint && lint_checks
    wants docs && docs_checks
    wants bench && bench_checks
}
# Not as far behind as compilers, which would leave nothing to them.
behind() {
    go_last 5
    command_checks
}
# The tests of Python wait more than they work: what is compiled meanwhile has the cores.
wants sanitizers && aside asan address_build
wants python && aside python python_checks
wants command && aside command behind
aside beside beside
wants library && library_checks
join asan
wants sanitizers && aside tsan thread_build
wants sanitizers && address_checks
join tsan
wants sanitizers && thread_checks
join python
join command
join beside
finish
