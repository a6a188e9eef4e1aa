# Tests of ShardFeed. With Debian's Julia 1.5.3: julia --compile=min, see docs/julia.md.

using ShardFeed
using Test

# Not include(file), which Julia 1.5 compiles: what is thrown in the file could not pass through it.
run_file(name) = Base.include(@__MODULE__, joinpath(@__DIR__, name))

run_file("files.jl")
@testset "ShardFeed" begin
    for name in ("header", "samples", "streams", "mixes", "saving", "batches", "random_access", "members", "opening",
                 "openers", "tokenizers", "writing", "misuse", "doctests")
        run_file(name * ".jl")
    end
end
