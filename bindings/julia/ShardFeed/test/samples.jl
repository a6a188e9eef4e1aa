# Samples and their bytes.

@testset "samples" begin
    with_files() do
        ShardFeed.open("train-{000..001}.tar") do stream
            @test eltype(stream) === Sample
            samples = 0
            for sample in stream
                samples += 1
                @test sample.key == (samples <= 3 ? "a/000$samples" : "b/000$samples")
                @test sample.shard == (samples <= 3 ? "train-000.tar" : "train-001.tar")
                @test collect(keys(sample)) == ["cls", "txt"]
                @test String(sample["cls"]) == "$samples"
                @test haskey(sample, "txt") && !haskey(sample, "TXT") && !haskey(sample, "")
                @test get(sample, "jpg", nothing) === nothing
                @test get(() -> 5, sample, "jpg") == 5
                @test get(() -> 5, sample, "cls") == codeunits("$samples")
                @test_throws KeyError sample["jpg"]
                @test_throws KeyError("jpg") sample["jpg"]
                @test occursin("\"jpg\" (there are: \"cls\", \"txt\") not found", refusal(() -> sample["jpg"]))
                @test length(sample) == length(pairs(sample)) == length(values(sample)) == 2
                @test [String(bytes) for bytes in values(sample)][1] == "$samples"
                @test Dict(name => String(bytes) for (name, bytes) in sample)["cls"] == "$samples"
                @test sample.epoch == 0 && sample.lane == 0
                @test sample.shard_number == (samples <= 3 ? 0 : 1)
                @test sample.offset % 512 == 0
                @test_throws ArgumentError sample.nothing_of_that_name
            end
            @test samples == 6
            @test iterate(stream) === nothing # and goes on being at its end
            @test isempty(stream)
        end
    end
end

@testset "bytes" begin
    with_files() do
        data = UInt8[0, 1, 255, 0]
        write_tar("data.tar", ["x.bin" => data, "x.empty" => UInt8[]])
        ShardFeed.open("data.tar") do stream
            sample = first(stream)
            bytes = sample["bin"]
            @test bytes isa DenseVector{UInt8}
            @test bytes == data && size(bytes) == (4,) && bytes[end] == 0 && bytes[2:3] == [1, 255]
            @test sum(Int, bytes) == 256
            @test copy(bytes) == data && copy(bytes) isa Vector{UInt8}
            @test Vector{UInt8}(bytes) == data && Array(bytes) == data && collect(bytes) == data
            @test String(bytes) == String(copy(data)) && String(bytes) == String(bytes)
            @test reinterpret(UInt16, bytes) == reinterpret(UInt16, data)
            @test sprint(write, bytes) == String(copy(data))
            @test read(IOBuffer(bytes)) == data
            @test_throws BoundsError bytes[0]
            @test_throws BoundsError bytes[5]
            @test_throws ShardFeedError bytes[1] = 0x00
            @test isempty(sample["empty"]) && String(sample["empty"]) == "" && copy(sample["empty"]) == UInt8[]
            @test sprint(write, sample["empty"]) == ""
            # What another library of C gets.
            @test GC.@preserve(bytes, unsafe_load(pointer(bytes), 3)) == 255
        end
    end
end

@testset "a sample is released when the stream goes on" begin
    with_files() do
        ShardFeed.open("train-{000..001}.tar") do stream
            before = first(stream)
            bytes = before["txt"]
            @test String(bytes) == "one"
            next = first(stream)
            for use in (
                () -> before["txt"], () -> before.key, () -> length(before), () -> haskey(before, "txt"),
                () -> keep(before), () -> copy(before), () -> bytes[1], () -> copy(bytes),
                () -> String(bytes), () -> pointer(bytes), () -> collect(before),
            )
                error = try use() catch caught; caught end
                @test error isa ShardFeedError && error.class === :USAGE
                @test occursin("copy(sample) or keep(sample)", error.help)
            end
            @test repr(before) == "Sample (released)"
            @test repr(next) == "Sample \"a/0002\" of train-000.tar: cls (1 byte), txt (3 bytes)"
        end
    end
end

@testset "kept and copied samples stay" begin
    with_files() do
        kept, copied = ShardFeed.open("train-{000..001}.tar") do stream
            kept, copied = Sample[], SampleCopy[]
            for sample in stream
                push!(kept, keep(sample))
                push!(copied, copy(sample))
            end
            kept, copied
        end
        GC.gc()
        @test [String(sample["txt"]) for sample in kept] == ["one", "two", "three", "four", "five", "six"]
        @test [sample.key for sample in kept] == [sample.key for sample in copied]
        @test [sample.offset for sample in kept] == [sample.offset for sample in copied]
        @test all(Dict(k) == Dict(c) for (k, c) in zip(kept, copied))
        @test copied[2]["txt"] == codeunits("two") && copied[2]["txt"] isa Vector{UInt8}
        @test_throws KeyError copied[1]["jpg"]
        @test occursin("there are: \"cls\", \"txt\"", refusal(() -> copied[1]["jpg"]))
        @test get(copied[1], "jpg", 1) == 1 && !haskey(copied[1], "jpg") && copy(copied[1]) === copied[1]
        bytes = kept[1]["txt"]
        again = keep(kept[1])
        close(kept[1])
        close(kept[1])
        @test_throws ShardFeedError bytes[1]
        @test String(again["txt"]) == "one"
        # A view keeps its memory alive without its sample.
        bytes = again["txt"]
        again = kept = nothing
        GC.gc()
        @test String(bytes) == "one"
    end
end

@testset "names and keys are bytes" begin
    with_files() do
        write_tar("bytes.tar", ["\xff\xfe.txt" => "x", "\xff\xfe.\xe9t\xe9" => "y"])
        ShardFeed.open("bytes.tar") do stream
            sample = first(stream)
            @test codeunits(sample.key) == [0xff, 0xfe]
            @test String(sample["\xe9t\xe9"]) == "y"
        end
    end
end
