# Streams: options, errors, waiting, cancelling, closing.

@testset "ways to open" begin
    with_files() do
        all = ["a/0001", "a/0002", "a/0003", "b/0004", "b/0005", "b/0006"]
        @test ShardFeed.open(stream_keys, "train-{000..001}.tar") == all
        @test ShardFeed.open(stream_keys, ["train-000.tar", "train-001.tar"]) == all
        @test ShardFeed.open(stream_keys, ("train-001.tar",)) == all[4:6]
        stream = ShardFeed.open("train-000.tar")
        @test isopen(stream) && sprint(show, stream) == "ShardFeed.Stream over train-000.tar"
        @test [sample.key for sample in Iterators.take(stream, 2)] == all[1:2]
        @test !isempty(stream) && stream_keys(stream) == all[3:3] # goes on where it stopped
        close(stream)
        close(stream)
        @test !isopen(stream)
        # What the function throws comes through, and the stream is closed.
        leaked = Ref{Any}()
        @test_throws DivideError ShardFeed.open(s -> (leaked[] = s; 1 ÷ 0), "train-000.tar")
        @test !isopen(leaked[])
        @test ShardFeed.open(identity, "train-000.tar") isa ShardFeed.Stream
    end
end

@testset "options" begin
    with_files() do
        urls = "train-{000..001}.tar"
        order(; options...) = ShardFeed.open(stream_keys, urls; options...)
        @test order(epochs=2, threads=1) == [order(); order()]
        shuffled = order(shuffle=6, seed=1)
        @test shuffled == order(shuffle="6", seed=0x01) && shuffled != order() && sort(shuffled) == order()
        ShardFeed.open(urls; fields=["txt"]) do stream
            @test all(collect(keys(sample)) == ["txt"] for sample in stream)
        end
        @test order(select_keys=("b*",), memory="1MiB", allow_empty=true) == order()[4:6]

        error = shf_error(() -> order(shufle=3))
        @test error.class === :USAGE && occursin("shuffle", error.help)
        @test error.message == "unknown option \"shufle\"; help: did you mean \"shuffle\"?"
        error = shf_error(() -> order(threads="many"))
        @test error.class === :USAGE && occursin("threads", error.message)
        @test shf_error(() -> order(threads=-1)).class === :USAGE
        @test shf_error(() -> order(threads=nothing)).class === :USAGE
        @test shf_error(() -> order(decode="a\0b")).class === :USAGE
        @test shf_error(() -> order(timeout="soon")).class === :USAGE
        @test shf_error(() -> Archive("images.zip"; shuffle=3)).class === :USAGE
        @test shf_error(() -> ShardFeed.open("a\0b")).class === :USAGE
        @test shf_error(() -> ShardFeed.expand_urls("{0..9}.tar"; max_shards=9)).class === :LIMIT

        @test ShardFeed._option_text.([true, 5, 1.0, 0.25, 1e-9, 0.9999999999, :x]) ==
              ["true", "5", "1", "0.250000000", "0.000000001", "1", "x"]
        @test ShardFeed._seconds.([0, 1.5, "2min", "3ms"]) ≈ [0, 1.5, 120, 0.003]
        names = [option.name for option in ShardFeed.options()]
        @test "shuffle" in names && allunique(names) && length(names) > 30
        @test ShardFeed.feature("gzip") !== nothing
    end
end

@testset "errors" begin
    with_files() do
        whole = read("train-000.tar")
        write("cut.tar", whole[1:3600]) # inside a/0002.txt
        ShardFeed.open("cut.tar") do stream
            @test first(stream).key == "a/0001"
            error = shf_error(() -> foreach(identity, stream))
            @test error.class === :TRUNCATED && error.code == -2
            @test (error.shard, error.member, error.offset) == ("cut.tar", "a/0002.txt", 3072)
            @test startswith(error.message, "cut.tar: member \"a/0002.txt\": at byte 3072: ")
            @test startswith(error.help, "copy it again")
            @test occursin("ShardFeedError (TRUNCATED): cut.tar: ", sprint(showerror, error))
            again = shf_error(() -> iterate(stream))
            @test again.class === :TRUNCATED && again.message == error.message
        end
        damaged = copy(whole)
        damaged[1024+1] = 0x58 # the name of the second member, so that the checksum does not match
        write("damaged.tar", damaged)
        error = shf_error(() -> ShardFeed.open(stream_keys, "damaged.tar"))
        @test error.class in (:FORMAT, :INTEGRITY) && error.shard == "damaged.tar" && error.offset == 1024
        error = shf_error(() -> ShardFeed.open(stream_keys, ["train-000.tar", "missing.tar"]))
        @test error.class === :IO && error.os_error == 2 && error.shard == "missing.tar"
        @test error.offset === nothing && error.member === nothing
        # A number that this version does not know is no reason to fail.
        buffer = ShardFeed.new_error()
        fill!(buffer, 0xff)
        buffer[1:4] = reinterpret(UInt8, Int32[-99])
        buffer[17:22] = codeunits("a: b\0!")
        error = ShardFeed._error(buffer)
        @test error.class === :UNKNOWN && error.code == -99 && error.message == "a: b"
        buffer[9:16] = reinterpret(UInt8, UInt64[512])
        text = "s: t.tar: member \"x.jpg\": at byte 512: bad; help: do that\0"
        buffer[17:16+ncodeunits(text)] = codeunits(text)
        error = ShardFeed._error(buffer)
        @test (error.shard, error.member, error.offset, error.help) == ("s: t.tar", "x.jpg", 512, "do that")
    end
end

@testset "the log" begin
    with_files() do
        whole = read("train-000.tar")
        write("cut.tar", whole[1:3600])
        said = Tuple{Symbol,String}[]
        urls = ["cut.tar", "train-001.tar"]
        options = (on_error="skip_shard", threads=1)
        log(level, message) = push!(said, (level, message))
        @test length(ShardFeed.open(stream_keys, urls; log=log, options...)) >= 3
        @test length(said) == 1 && said[1][1] === :warn && occursin("cut.tar", said[1][2])
        @test_logs (:warn, r"cut.tar") ShardFeed.open(stream_keys, urls; options...)
        @test_logs ShardFeed.open(stream_keys, urls; log=nothing, options...)
        # What it throws goes to the loop; nothing is lost.
        ShardFeed.open(urls; log=(level, message) -> error("no"), options...) do stream
            seen = String[]
            thrown = 0
            while true
                try
                    for sample in stream
                        push!(seen, sample.key)
                    end
                    break
                catch caught
                    caught isa ErrorException || rethrow()
                    thrown += 1
                end
            end
            @test thrown == 1 && seen[end-2:end] == ["b/0004", "b/0005", "b/0006"]
        end
        # It may use the stream.
        ShardFeed.open(urls; log=(level, message) -> ShardFeed.cancel(stream_of_log[]), options...) do stream
            global stream_of_log = Ref(stream)
            @test shf_error(() -> stream_keys(stream)).class === :CANCELLED
        end
    end
end

@testset "skips" begin
    with_files() do
        write("cut.tar", read("train-000.tar")[1:3600])
        skips = ShardFeed.Skip[]
        take(skip) = push!(skips, skip)
        urls = ["cut.tar", "train-001.tar"]
        options = (log=nothing, on_skip=take, on_error="skip_sample")
        ShardFeed.open(stream_keys, urls; options...)
        @test length(skips) == 1
        skip = first(skips)
        @test skip.error.class === :TRUNCATED && skip.error.offset !== nothing
        @test skip.url == "cut.tar" && skip.key === nothing && skip.whole_shard
        empty!(skips)
        keys = ShardFeed.open(stream_keys, "train-001.tar"; log=nothing)
        @test isempty(ShardFeed.open(stream_keys, "train-001.tar"; max_member=0, options...))
        @test [skip.key for skip in skips] == keys && !any(skip -> skip.whole_shard, skips)
        # What it throws goes to the loop.
        refuse(skip) = error("no")
        @test_throws ErrorException ShardFeed.open(
            stream_keys, urls; log=nothing, on_skip=refuse, on_error="skip_sample",
        )
    end
end

# A stream that delivers nothing for as long as the test wants.
with_silent_pipe(f; options...) = ShardFeed.open(f, "pipe:sleep 20"; options...)

@testset "waiting" begin
    with_silent_pipe() do stream
        # Other tasks of this thread run meanwhile.
        ticks = Ref(0)
        ticker = @async for _ in 1:10
            sleep(0.01)
            ticks[] += 1
        end
        waiter = @async shf_error(() -> iterate(stream))
        wait(ticker)
        @test ticks[] == 10 && !istaskdone(waiter)
        # A second task is told so, and the stream is as it was.
        for use in (() -> iterate(stream), () -> isempty(stream), () -> ShardFeed.save(stream),
                    () -> iterate(batches(stream)), () -> ShardFeed.restore!(stream, UInt8[]))
            error = shf_error(use)
            @test error.class === :USAGE && occursin("another task", error.message)
        end
        ShardFeed.cancel(stream)
        @test fetch(waiter).class === :CANCELLED
        @test shf_error(() -> iterate(stream)).class === :CANCELLED
    end
    with_silent_pipe(timeout=0.1) do stream
        started = time()
        error = shf_error(() -> iterate(stream))
        @test error.class === :TIMEOUT && 0.09 < time() - started < 5
        @test shf_error(() -> iterate(stream)).class === :TIMEOUT
    end
    with_silent_pipe() do stream
        waiter = @async shf_error(() -> iterate(stream))
        sleep(0.05)
        close(stream)
        @test fetch(waiter).class in (:CANCELLED, :USAGE)
        @test !isopen(stream) && shf_error(() -> iterate(stream)).class === :USAGE
    end
end

@testset "statistics" begin
    with_files() do
        ShardFeed.open("train-{000..001}.tar") do stream
            @test length(stream_keys(stream)) == 6
            stats = ShardFeed.stats(stream)
            @test stats[:samples] == 6 && stats[:shards] == 2 && stats[:bytes] > 6
        end
    end
end

@testset "what was not closed is closed in the end" begin
    with_files() do
        before = length(ShardFeed._streams)
        forget() = (iterate(ShardFeed.open("train-000.tar")); nothing)
        foreach(_ -> forget(), 1:3)
        GC.gc()
        GC.gc()
        close(ShardFeed.open("train-000.tar"))
        @test length(ShardFeed._streams) <= before + 1
    end
end
