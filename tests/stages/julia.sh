# shellcheck shell=bash

julia_package_checks() { check "install Julia" scripts/install_dependencies.sh julia; }
# The tests of Julia run in the interpreter, on one core: see docs/julia.md.
for_julia() { # COMMAND ...
    SHARDFEED_LIB=$plain/libshardfeed.so.0 JULIA_LOAD_PATH=$PWD/bindings/julia:@stdlib \
        JULIA_DEPOT_PATH=$build/julia JULIA_NUM_THREADS=2 "$@"
}
run_julia() { for_julia julia --startup-file=no "$@"; }
interpreted() { run_julia --compile=min --compiled-modules=no "$@"; }
julia_served() { # SCRIPT
    SHARDFEED_COMMAND=$plain/src/cli/shardfeed for_julia python3 "tests/conformance/$1" julia --startup-file=no \
        --compile=min --compiled-modules=no bindings/julia/ShardFeed/test/conformance.jl '{folder}' '{suite}/cases.json'
}
julia_checks() {
    check "Julia tests" interpreted bindings/julia/ShardFeed/test/runtests.jl
    check "Julia, compiled" run_julia bindings/julia/ShardFeed/test/jit.jl
    check "conformance in Julia" interpreted bindings/julia/ShardFeed/test/conformance.jl
    check "conformance in Julia over HTTP" julia_served over_http.py
    check "conformance in Julia through feeds" julia_served over_feed.py
}
