# Saved states.

@testset "save and restore" begin
    with_files() do
        urls = "train-{000..001}.tar"
        options = (shuffle=4, seed=7, epochs=2, shuffle_shards=true)
        whole = ShardFeed.open(stream_keys, urls; options...)
        @test length(whole) == 12
        for stop in 0:12
            before = String[]
            saved = ShardFeed.open(urls; options...) do stream
                append!(before, [sample.key for sample in Iterators.take(stream, stop)])
                ShardFeed.save(stream)
            end
            @test saved isa Vector{UInt8}
            after = ShardFeed.open(urls; threads=1, options...) do stream
                stop % 2 == 0 && isempty(saved) # fetches nothing
                @test ShardFeed.restore!(stream, saved) === stream
                stream_keys(stream)
            end
            @test [before; after] == whole
        end
    end
end

@testset "a sample that was looked for and not taken is not lost" begin
    with_files() do
        urls = "train-000.tar"
        saved = ShardFeed.open(urls) do stream
            @test first(stream).key == "a/0001" && !isempty(stream)
            ShardFeed.save(stream)
        end
        ShardFeed.open(urls) do stream
            ShardFeed.restore!(stream, saved)
            @test stream_keys(stream) == ["a/0002", "a/0003"]
        end
    end
end

@testset "states that do not fit" begin
    with_files() do
        saved = ShardFeed.open(ShardFeed.save, "train-000.tar")
        ShardFeed.open("train-001.tar") do stream
            @test shf_error(() -> ShardFeed.restore!(stream, saved)).class === :USAGE
            @test shf_error(() -> ShardFeed.restore!(stream, UInt8[1, 2, 3])).class in (:FORMAT, :INTEGRITY)
            @test shf_error(() -> ShardFeed.restore!(stream, UInt8[])).class in (:FORMAT, :INTEGRITY)
            @test length(stream_keys(stream)) == 3 # the stream is as it was
            @test shf_error(() -> ShardFeed.restore!(stream, saved)).class === :USAGE
        end
    end
end

@testset "merged states" begin
    with_files() do
        urls = "train-{000..001}.tar"
        states, taken = Vector{UInt8}[], String[]
        for rank in 0:1
            ShardFeed.open(urls; lanes=2, world_size=2, rank=rank) do stream
                push!(taken, first(stream).key)
                push!(states, ShardFeed.save(stream))
            end
        end
        merged = ShardFeed.merge_states(states)
        rest = ShardFeed.open(urls; lanes=2) do stream
            ShardFeed.restore!(stream, merged)
            stream_keys(stream)
        end
        @test length(rest) == 4 && isempty(intersect(rest, taken))
        @test shf_error(() -> ShardFeed.merge_states([states[1], states[1]])).class === :USAGE
        @test shf_error(() -> ShardFeed.merge_states([UInt8[]])) isa ShardFeedError
    end
end
