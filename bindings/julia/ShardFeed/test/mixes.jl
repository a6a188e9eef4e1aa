# Mixes of streams.

@testset "mixes" begin
    with_files() do
        parts(; options...) = [ShardFeed.open("train-000.tar"; options...), ShardFeed.open("train-001.tar"; options...)]
        ShardFeed.mix(parts(); seed=1) do stream
            found = [(sample.key, Int(sample.part)) for sample in stream]
            @test sort(first.(found)) == ["a/0001", "a/0002", "a/0003", "b/0004", "b/0005", "b/0006"]
            @test all(part == (key[1] == 'a' ? 0 : 1) for (key, part) in found)
            @test [key for (key, part) in found if part == 0] == ["a/0001", "a/0002", "a/0003"]
            @test ShardFeed.stats(stream)[:samples] == 6
        end
        ShardFeed.mix(parts(); weights=(1, 1), batch=3, decode="cls:int") do stream
            @test sort(reduce(vcat, [copy(batch["cls"]) for batch in batches(stream)])) == 1:6
        end
        # A part belongs to the mix; both may be closed in any order.
        given = parts()
        stream = ShardFeed.mix(given)
        @test !isopen(given[1])
        error = shf_error(() -> iterate(given[1]))
        @test error.class === :USAGE && occursin("part of a mix", error.message)
        close(given[1])
        ShardFeed.cancel(given[2])
        saved = (iterate(stream); ShardFeed.save(stream))
        rest = stream_keys(stream)
        @test length(rest) == 5
        close(stream)
        @test ShardFeed.mix(again -> stream_keys(ShardFeed.restore!(again, saved)), parts()) == rest
        # After a failure the parts are as they were.
        given = parts()
        @test shf_error(() -> ShardFeed.mix(given; weights=[1])).class === :USAGE
        @test occursin("weight 1", shf_error(() -> ShardFeed.mix(given; weights=[1, -1])).message)
        @test shf_error(() -> ShardFeed.mix(given; until="never")).class === :USAGE
        @test shf_error(() -> ShardFeed.mix(given; shuffle=3)).class === :USAGE
        @test occursin("twice", shf_error(() -> ShardFeed.mix([given[1], given[1]])).message)
        @test shf_error(() -> ShardFeed.mix(ShardFeed.Stream[])) isa ShardFeedError
        @test length(stream_keys(given[1])) == 3
        @test shf_error(() -> ShardFeed.mix(given)).class === :USAGE # one was used
        foreach(close, given)
        @test occursin("closed", shf_error(() -> ShardFeed.mix(given)).message)
    end
end

@testset "a mix waits as a stream does, and passes on the messages of its parts" begin
    with_files() do
        slow = ShardFeed.open("pipe:sleep 0.3; cat train-000.tar")
        @test length(ShardFeed.mix(stream_keys, [slow])) == 3
        write("cut.tar", read("train-000.tar")[1:3600])
        said = String[]
        cut = ShardFeed.open("cut.tar"; on_error="skip_shard", log=(level, message) -> push!(said, message))
        @test ShardFeed.mix(stream_keys, [cut]) == ["a/0001"]
        @test length(said) == 1 && occursin("cut.tar", said[1])
    end
end

@testset "a mix says what it skips itself" begin
    with_files() do
        write_tar("bad.tar", ["c/1.cls" => "1", "c/2.cls" => "two", "c/3.cls" => "3"])
        write("cut.tar", read("train-000.tar")[1:3600])
        said, skips, skips_of_part = String[], ShardFeed.Skip[], ShardFeed.Skip[]
        parts() = [ShardFeed.open("bad.tar"; log=nothing), ShardFeed.open(
            "cut.tar"; on_error="skip_shard", log=nothing, on_skip=skip -> push!(skips_of_part, skip),
        )]
        options = (batch=2, decode="cls:int", on_error="skip_sample")
        rows(stream) = sort(reduce(vcat, [copy(batch["cls"]) for batch in batches(stream)]))
        receive(level, message) = push!(said, string(level, ": ", message))
        note(skip) = push!(skips, skip)
        @test ShardFeed.mix(rows, parts(); log=receive, on_skip=note, options...) == [1, 1, 3]
        @test length(said) == 1 && occursin(r"^warn: .*bad\.tar.*2\.cls", said[1])
        @test [(skip.url, skip.key, skip.whole_shard) for skip in skips] == [("bad.tar", "c/2", false)]
        @test skips[1].error.class === :FORMAT
        @test [skip.url for skip in skips_of_part] == ["cut.tar"]
        # Without a function for messages they go to Julia, as those of a stream do.
        @test_logs (:warn, r"bad\.tar") ShardFeed.mix(rows, parts(); options...)
        @test_logs ShardFeed.mix(rows, parts(); log=nothing, options...)
        # What it throws goes to the loop.
        @test_throws ErrorException ShardFeed.mix(rows, parts(); log=nothing, on_skip=_ -> error("no"), options...)
        @test length(skips) == 1
    end
end
