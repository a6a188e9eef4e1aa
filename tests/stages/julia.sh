# shellcheck shell=bash

julia_package_checks() { check "install Julia" scripts/install_dependencies.sh julia; }
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
