# Openers: URLs that a Julia function opens.

mutable struct CountingIO <: IO # reads forwards only, and yields as a connection does
    data::IOBuffer
    log::Vector{Symbol}
end
Base.read(io::CountingIO, n::Integer) = (yield(); push!(io.log, :read); read(io.data, n))
Base.close(io::CountingIO) = (push!(io.log, :close); close(io.data))
Base.eof(io::CountingIO) = eof(io.data)

everything(url; options...) = ShardFeed.open(url; options...) do stream
    [(sample.key, String(sample["txt"])) for sample in stream]
end

# Waits for what another task does soon.
becomes(f) = timedwait(f, 10.0; pollint=0.01) === :ok

@testset "openers" begin
    with_files() do
        local_path(url) = replace(url, "db://" => "")
        urls = "db://train-{000..001}.tar"
        expected = everything("train-{000..001}.tar")
        for opener in (url -> Base.open(local_path(url)), url -> read(local_path(url)),
                       url -> IOBuffer(read(local_path(url))), url -> Base.open(`cat $(local_path(url))`),
                       url -> (sleep(0.01); read(local_path(url)) => "v1"))
            @test everything(urls; opener=opener) == expected
            @test everything(urls; opener=opener, threads=2, shuffle=3, seed=1, epochs=2) ==
                  everything("train-{000..001}.tar"; threads=2, shuffle=3, seed=1, epochs=2)
        end
        # The library's own schemes come after it, local files before.
        @test everything("http://host/train-000.tar"; opener=url -> read(basename(url))) == expected[1:3]
        @test everything("train-000.tar"; opener=url -> error("not asked")) == expected[1:3]

        from_disk = url -> Base.open(local_path(url))
        Dataset(urls; opener=from_disk, index="memory") do dataset
            @test length(dataset) == 6 && String(dataset["b/0005"]["txt"]) == "five"
            @test [sample.key for sample in dataset[1:6]] == first.(expected)
            @test get_batch(dataset, [6, 1]; decode="cls:int")["cls"] == [6, 1]
            # Several tasks at once.
            tasks = [@async String(dataset[1+n%6]["txt"]) for n in 1:12]
            @test fetch.(tasks) == [last(expected[1+n%6]) for n in 1:12]
        end
        for opener in (from_disk, url -> read(local_path(url)))
            Archive("db://images.zip"; opener=opener) do archive
                @test String(archive["b.txt"]) == "second" && String.(archive[1:2]) == ["first", "second"]
            end
            ShardFeed.Members("db://images.zip"; opener=opener) do members
                @test [String(read(member)) for member in members] == ["first", "second"]
            end
        end

        # Saved positions, and the version that guards them.
        state = ShardFeed.open(urls; opener=from_disk) do stream
            foreach(identity, Iterators.take(stream, 2))
            ShardFeed.save(stream)
        end
        ShardFeed.open(urls; opener=from_disk) do stream
            ShardFeed.restore!(stream, state)
            @test [sample.key for sample in stream] == first.(expected[3:6])
        end
        ShardFeed.open(urls; opener=url -> read(local_path(url)) => "other") do stream
            ShardFeed.restore!(stream, state)
            @test shf_error(() -> collect(sample.key for sample in stream)).class === :CHANGED
        end

        # What is opened is closed, and the tasks end.
        log = Symbol[]
        @test everything(urls; opener=url -> CountingIO(IOBuffer(read(local_path(url))), log)) == expected
        @test becomes(() -> count(==(:close), log) == 2) && :read in log
        GC.gc()
        @test becomes(() -> isempty(ShardFeed._servers) || (GC.gc(); ShardFeed.close_abandoned(); false))

        mixed = [ShardFeed.open("db://train-000.tar"; opener=from_disk), ShardFeed.open("train-001.tar")]
        @test ShardFeed.mix(stream -> length([s.key for s in stream]), mixed; until="all") == 6
    end
end

@testset "openers that fail" begin
    with_files() do
        for (class, code, opener) in ((:IO, 2, url -> Base.open("missing")), (:IO, 0, url -> error("out of order")),
                                      (:USAGE, 0, url -> url + 1), (:USAGE, 0, url -> 5),
                                      (:NOT_FOUND, 0, url -> throw(ShardFeedError(Int32(-21), "no such shard"))))
            for start in (() -> Archive("db://a:sesame@x.zip"; opener=opener),
                          () -> Dataset("db://a:sesame@x.tar"; opener=opener, index="memory"),
                          () -> everything("db://a:sesame@x.tar"; opener=opener))
                found = shf_error(start)
                @test found.class === class && found.os_error == code
                @test occursin("db://", found.message) && !occursin("sesame", found.message)
            end
        end
        @test occursin("out of order", shf_error(() -> Archive("db://x"; opener=url -> error("out of order"))).message)
        @test shf_error(() -> Archive("db://x"; opener="fsspec")).class === :USAGE
        # Skipped, and said, as faults of files are.
        skips, said = [], []
        opener(url) = occursin("000", url) ? error("gone") : read("train-001.tar")
        @test length(everything("db://train-{000..001}.tar"; opener=opener, on_error="skip_shard",
                                on_skip=skip -> push!(skips, skip), log=(level, text) -> push!(said, text))) == 3
        @test length(skips) == 1 && skips[1].whole_shard && skips[1].url == "db://train-000.tar"
        @test any(text -> occursin("gone", text), said)
        # In the middle of a read.
        @test shf_error(() -> everything("db://x.tar"; opener=url -> CountingIO(IOBuffer("x"^700), Symbol[]))).class in
              (:FORMAT, :TRUNCATED)
    end
end

@testset "openers that wait" begin
    with_files() do
        waits = Channel{Nothing}(10)
        slow(url) = (put!(waits, nothing); sleep(30); read("train-000.tar"))
        # close() and cancel() do not wait for it.
        stream = ShardFeed.open("db://x.tar"; opener=slow)
        reading = @async shf_error(() -> first(stream))
        take!(waits)
        started = time()
        close(stream)
        @test fetch(reading).class in (:CANCELLED, :USAGE) && time() - started < 5
        # timeout.
        @test shf_error(() -> everything("db://x.tar"; opener=slow, timeout=0.2)).class === :TIMEOUT
        take!(waits)
        # Ctrl-C: the call ends, and its memory is given up only then.
        opening = @async try
            Archive("db://x.zip"; opener=slow)
        catch error
            error
        end
        take!(waits)
        schedule(opening, InterruptException(); error=true)
        @test fetch(opening) isa InterruptException
        @test time() - started < 10
        # One archive waits; another one works meanwhile.
        other = @async try
            Archive("db://x.zip"; opener=slow)
        catch error
            error
        end
        take!(waits)
        @test Archive(archive -> String(archive[1]), "db://y.zip"; opener=url -> read("images.zip")) == "first"
        schedule(other, InterruptException(); error=true)
        @test fetch(other) isa InterruptException
    end
end
