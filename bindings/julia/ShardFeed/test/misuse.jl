# Wrong use gives a ShardFeedError, never a crash.

using Serialization

function round_trip(value)
    io = IOBuffer()
    serialize(io, value)
    return deserialize(seekstart(io))
end

@testset "use after close" begin
    with_files() do
        stream = ShardFeed.open("train-000.tar")
        sample = first(stream)
        bytes = sample["txt"]
        kept = keep(sample)
        close(stream)
        for use in (
            () -> iterate(stream), () -> isempty(stream), () -> ShardFeed.save(stream),
            () -> ShardFeed.restore!(stream, UInt8[]), () -> ShardFeed.stats(stream),
            () -> sample["txt"], () -> sample.key, () -> bytes[1], () -> iterate(batches(stream)),
        )
            error = shf_error(use)
            @test error isa ShardFeedError && error.class === :USAGE && !isempty(error.help)
        end
        ShardFeed.cancel(stream)
        @test String(kept["txt"]) == "one" # samples outlive their stream

        archive, dataset = Archive("images.zip"), Dataset("train-000.tar")
        close(archive)
        close(dataset)
        for use in (
            () -> archive[1], () -> archive["a.txt"], () -> length(archive), () -> keys(archive)[1],
            () -> haskey(archive, "a.txt"), () -> get_many(archive, ["a.txt"]), () -> view(archive, 1),
            () -> ShardFeed.member(archive, 1), () -> dataset[1], () -> length(dataset),
            () -> get_many(dataset, [1]), () -> get_batch(dataset, [1]), () -> dataset["a/0001"],
            () -> ShardFeed.shard(dataset, 1),
        )
            error = shf_error(use)
            @test error isa ShardFeedError && error.class === :USAGE && occursin("closed", error.message)
        end
        @test sprint(show, archive) == "Archive of images.zip (closed)"
        @test sprint(show, dataset) == "Dataset over train-000.tar (closed)"
        @test sprint(show, stream) == "ShardFeed.Stream over train-000.tar (closed)"
        close(archive)
        close(dataset)
    end
end

@testset "closing in any order, and by many tasks" begin
    with_files() do
        for _ in 1:10
            stream = ShardFeed.open("train-{000..001}.tar"; batch=2, decode="cls:int")
            column = first(batches(stream))["cls"]
            closers = [Threads.@spawn(close(stream)) for _ in 1:4]
            foreach(wait, closers)
            @test column == [1, 2]
            dataset = Dataset("train-000.tar")
            readers = [Threads.@spawn(shf_error(() -> dataset[1])) for _ in 1:8]
            close(dataset)
            @test all(result === nothing || result.class === :USAGE for result in fetch.(readers))
        end
    end
end

@testset "tasks that share a stream, or a sample" begin
    with_files() do
        # Each sample comes once, whoever gets it; the others are told.
        ShardFeed.open("train-{000..001}.tar"; epochs=50) do stream
            taken = [Threads.@spawn(begin
                seen, refused = 0, 0
                while true
                    try
                        step = iterate(stream)
                        step === nothing && break
                        seen += 1
                        copy(step[1])
                    catch error
                        error isa ShardFeedError && error.class === :USAGE || rethrow()
                        refused += 1
                    end
                end
                seen
            end) for _ in 1:3]
            @test sum(fetch, taken) == 300
        end
        # A sample that another task reads is not given back under it.
        ShardFeed.open("train-{000..001}.tar"; epochs=20) do stream
            readers = []
            for sample in stream
                push!(readers, Threads.@spawn try String(sample["txt"]) catch error; error end)
            end
            words = ["one", "two", "three", "four", "five", "six"]
            @test all(result in words || result isa ShardFeedError for result in fetch.(readers))
            @test length(readers) == 120
        end
        # While its own task waits, another one may.
        ShardFeed.open("train-000.tar") do stream
            @test [fetch(Threads.@spawn String(sample["txt"])) for sample in stream] == ["one", "two", "three"]
        end
    end
end

@testset "samples that were collected" begin
    with_files() do
        samples = ShardFeed.open(collect, "train-000.tar")
        @test length(samples) == 3
        @test all(shf_error(() -> sample.key).class === :USAGE for sample in samples)
        @test repr(samples[1]) == "Sample (released)"
    end
end

@testset "copies of handles" begin
    with_files() do
        Dataset("train-000.tar"; fields=["txt"], log=nothing) do dataset
            sent = round_trip(dataset)
            @test sent.handle !== dataset.handle && sent[2] isa SampleCopy && collect(keys(sent[2])) == ["txt"]
            close(sent)
            again = deepcopy(dataset)
            close(dataset)
            @test shf_error(() -> again[1]).class === :USAGE
        end
        @test String(round_trip(Archive("images.zip"))["b.txt"]) == "second"
        @test String(round_trip(Archive(read("images.zip")))["b.txt"]) == "second"
        ShardFeed.open("train-000.tar") do stream
            sample = first(stream)
            @test String(deepcopy(sample)["txt"]) == "one" && round_trip(copy(sample))["txt"] == codeunits("one")
            for value in (stream, sample, sample["txt"], keep(sample), Batch([sample]))
                @test shf_error(() -> round_trip(value)).class === :USAGE
            end
            @test shf_error(() -> deepcopy(stream)).class === :USAGE
            @test shf_error(() -> deepcopy(Batch([sample]))).class === :USAGE
        end
    end
end

@testset "a library that is not there, or another one" begin
    julia = joinpath(Sys.BINDIR, Base.julia_exename())
    code = "using ShardFeed; try Archive(\"x\") catch e; showerror(stdout, e) end"
    flags = `--startup-file=no --compile=min --compiled-modules=no`
    answer(library) = withenv("SHARDFEED_LIB" => library) do
        read(`$julia $flags -e $code`, String)
    end
    @test occursin("/nowhere.so of the environment variable SHARDFEED_LIB cannot be loaded", answer("/nowhere.so"))
    @test occursin("has no function shf_version: it is too old", answer("libc.so.6"))
    @test occursin("libshardfeed is not found", answer(nothing)) || ShardFeed.Libdl.find_library("libshardfeed.so.0") != ""
    withenv("LD_LIBRARY_PATH" => dirname(ShardFeed._library_path[])) do
        @test startswith(answer(nothing), "ShardFeedError (IO): x: open")
    end
end
