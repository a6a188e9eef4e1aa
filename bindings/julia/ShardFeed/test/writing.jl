# Writers: what is written comes back, whole shards alone appear, an error costs its sample.

everything_of(urls; options...) = ShardFeed.open(urls; options...) do stream
    [(sample.key, [name => copy(bytes) for (name, bytes) in sample]) for sample in stream]
end

made_samples(count) = [
    ("a/$n", ["jpg" => UInt8[mod(i * i, 251) for i in 1:37n], "cls" => bytes_of("$n"), "b.txt" => UInt8[]])
    for n in 0:count-1
]

hidden() = [name for name in readdir() if endswith(name, ".partial")]

@testset "what is written comes back" begin
    with_files() do
        samples = made_samples(20)
        for suffix in ("tar", "zip", "tar.zst"), threads in (1, 3)
            path = "$threads.$suffix"
            shards = ShardFeed.Writer(path; compress_threads=threads) do writer
                for (key, fields) in samples
                    write(writer, key, fields)
                end
            end
            @test everything_of(path) == samples
            shard = shards[1]
            @test length(shards) == 1 && (shard.url, shard.samples, shard.index) == (path, 20, nothing)
            @test shard.bytes == filesize(path) && shard.payload == sum(37n + ndigits(n) for n in 0:19)
            @test length(shard.digest) == 32
        end
        @test read("1.tar.zst") == read("3.tar.zst")
        # As in the tests of the library.
        @test ShardFeed.Writer(writer -> write(writer, "a", "txt" => "1"), "n.tar")[1].digest ==
              "e82fc83296452490c90480ddb80fc4c9"
    end
end

@testset "what a field may be" begin
    with_files() do
        ShardFeed.Writer("forms.tar") do writer
            @test write(writer, "1", "a" => "text", :b => SubString("long text", 6), "c" => -7) == 10
            @test write(writer, "2", (a=[0x01, 0x02, 0x03], b=view([0x01, 0x02, 0x03], 1:2:3), c=0x09)) == 6
            @test write(writer, "3", Dict("a" => codeunits("x"))) == 1
            @test write(writer, "4", ("a" => "1", "b" => UInt8[])) == 1
            @test push!(writer, "5" => ["a" => "1"]) === writer
            push!(writer, "6" => "a" => "1")
            for bad in (1.5, true, nothing, [1, 2], 'a')
                @test shf_error(() -> write(writer, "7", "a" => bad)).class === :USAGE
            end
            @test shf_error(() -> write(writer, "7", 1 => "a")).class === :USAGE
        end
        read_back = everything_of("forms.tar")
        @test first.(read_back) == string.(1:6)
        @test read_back[1][2] == ["a" => b"text", "b" => b"text", "c" => b"-7"]
        @test read_back[2][2] == ["a" => UInt8[1, 2, 3], "b" => UInt8[1, 3], "c" => b"9"]
    end
end

@testset "shards are cut by samples and by hand" begin
    with_files() do
        writer = ShardFeed.Writer("t-%03d.tar"; max_samples=4, first_shard=7, index=true)
        @test repr(writer) == "ShardFeed.Writer of t-%03d.tar" && isopen(writer)
        for (key, fields) in made_samples(10)
            write(writer, key, fields...)
        end
        ShardFeed.next_shard(writer)
        write(writer, "last", "txt" => "1")
        flush(writer; durable=true)
        @test length(ShardFeed.shards(writer)) == 3 && length(hidden()) == 1
        shards = ShardFeed.finish(writer)
        @test [shard.samples for shard in shards] == [4, 4, 2, 1] && shards == ShardFeed.shards(writer)
        @test shards[4].url == "t-010.tar" && shards[4].index == "t-010.tar.sfidx" && isfile("t-010.tar.sfidx")
        @test !isopen(writer) && repr(writer) == "ShardFeed.Writer of t-%03d.tar (closed)"
        @test everything_of("t-{007..009}.tar") == made_samples(10)
        Dataset(dataset -> (@test dataset[11].key == "last"), "t-{007..010}.tar"; index="require")
        @test shf_error(() -> write(writer, "a", "txt" => "1")).class === :USAGE
        @test shf_error(() -> ShardFeed.finish(writer)).class === :USAGE
        close(writer)
    end
end

@testset "nothing appears of what is not finished" begin
    with_files() do
        before = readdir()
        @test refusal(() -> ShardFeed.Writer("a-%d.tar") do writer
            write(writer, "a", "txt" => "1")
            throw(ArgumentError("the program's own"))
        end) == "ArgumentError: the program's own"
        @test readdir() == before
        writer = ShardFeed.Writer("a-%d.tar"; max_samples=1)
        write(writer, "a", "txt" => "1")
        write(writer, "b", "txt" => "2")
        flush(writer; durable=true)
        close(writer)
        @test ShardFeed.shards(writer)[1].url == "a-0.tar" && length(ShardFeed.shards(writer)) == 1
        @test readdir() == sort([before; "a-0.tar"])
        # As the garbage collector does.
        lost = ShardFeed.Writer("lost.tar")
        write(lost, "a", "txt" => "1")
        flush(lost)
        @test length(hidden()) == 1
        finalize(lost.handle)
        @test readdir() == sort([before; "a-0.tar"])
        @test ShardFeed.Writer(identity, "none.tar") == [] && !isfile("none.tar")
        # What is there stays.
        error = shf_error(() -> ShardFeed.Writer(w -> write(w, "a", "txt" => "9"), "a-0.tar"))
        @test (error.class, error.os_error) == (:IO, 17) && occursin("overwrite=true", error.help)
        @test everything_of("a-0.tar") == [("a", ["txt" => b"1"])]
        ShardFeed.Writer(w -> write(w, "a", "txt" => "9"), "a-0.tar"; overwrite=true)
        @test everything_of("a-0.tar") == [("a", ["txt" => b"9"])]
    end
end

@testset "shards wait until they are published" begin
    with_files() do
        before = readdir()
        made = ShardFeed.Writer("p-%d.tar"; max_samples=1, prepare=true) do writer
            write(writer, "a", "txt" => "1")
            write(writer, "b", "txt" => "2")
        end
        @test [shard.url for shard in made] == ["p-0.tar", "p-1.tar"]
        @test filter(name -> !startswith(name, "."), readdir()) == before
        for _ in 1:2
            ShardFeed.publish_prepared(made[1].token)
            ShardFeed.discard_prepared(made[2].token)
        end
        @test readdir() == sort([before; "p-0.tar"])
        @test everything_of("p-0.tar") == [("a", ["txt" => b"1"])]
        @test shf_error(() -> ShardFeed.publish_prepared(made[2].token)).class === :IO
        @test shf_error(() -> ShardFeed.publish_prepared("a")).class === :USAGE
        ShardFeed.discard_left("p-%d.tar")
        @test readdir() == sort([before; "p-0.tar"])
        @test ShardFeed.Writer(w -> write(w, "a", "txt" => "1"), "q.tar")[1].token === nothing
    end
end

@testset "an error costs its sample" begin
    with_files() do
        shards = ShardFeed.Writer("e.tar") do writer
            for (key, fields, cause) in (
                ("a.b", ["txt" => "1"], "dot in its last component"), ("a\0", ["txt" => "1"], "NUL"),
                ("../a", ["txt" => "1"], "\"..\""), ("a", [], "no fields"),
                ("a", ["txt" => "1", "TXT" => "2"], "there already"),
            )
                error = shf_error(() -> write(writer, key, fields))
                @test error.class === :USAGE && occursin(cause, error.message)
            end
            write(writer, "a", "txt" => "1")
            @test shf_error(() -> write(writer, "a", "txt" => "2")).class === :USAGE
            error = shf_error(() -> ShardFeed.write_files(writer, "b", "jpg" => "none"))
            @test (error.class, error.os_error) == (:IO, 2)
            @test shf_error(() -> ShardFeed.write_files(writer, "b", "jpg" => "no\0")).class === :USAGE
            ShardFeed.write_files(writer, "b", (jpg="images.zip",))
            ShardFeed.write_files(writer, "c", "jpg" => "file://$(pwd())/images.zip")
        end
        @test shards[1].samples == 3
        @test everything_of("e.tar")[3] == ("c", ["jpg" => read("images.zip")])
        @test everything_of("e.tar")[2] == ("b", ["jpg" => read("images.zip")])
        @test occursin("no number of a shard", refusal(() -> ShardFeed.Writer("a-%s.tar")))
        @test occursin("has no number", refusal(() -> ShardFeed.Writer("a.tar"; max_samples=1)))
        @test shf_error(() -> ShardFeed.Writer("a\0.tar")).class === :USAGE
        @test occursin("stream", refusal(() -> ShardFeed.Writer("a.tar"; shuffle=1)))
    end
end

@testset "samples are passed on" begin
    with_files() do
        urls = "train-{000..001}.tar"
        ShardFeed.Writer("p-%d.tar"; max_samples=3) do writer
            ShardFeed.open(stream -> append!(writer, stream), urls)
        end
        @test everything_of("p-{0..1}.tar") == everything_of(urls)
        ShardFeed.Writer("q.zip") do writer
            Dataset(dataset -> append!(writer, dataset), urls; log=nothing)
            ShardFeed.open("train-000.tar") do stream
                kept = keep(first(stream))
                write(writer, "another", kept)
                close(kept)
                @test shf_error(() -> push!(writer, kept)).class === :USAGE
            end
        end
        read_back = everything_of("q.zip")
        @test read_back[1:6] == everything_of(urls)
        @test read_back[7] == ("another", read_back[1][2])
    end
end

@testset "one task at a time, and no copies" begin
    with_files() do
        ShardFeed.Writer("x.tar") do writer
            results = fetch.([Threads.@spawn(count(1:200) do i
                shf_error(() -> write(writer, "$task-$i", "txt" => "1")) === nothing
            end) for task in 1:2])
            @test sum(results) > 0
            write(writer, "last", "written" => sum(results))
            @test shf_error(() -> deepcopy(writer)).class === :USAGE
            @test shf_error(() -> ShardFeed.Serialization.serialize(IOBuffer(), writer)).class === :USAGE
        end
        samples = everything_of("x.tar")
        @test samples[end][2] == ["written" => bytes_of(string(length(samples) - 1))]
    end
end

@testset "calls after a cancel are cancelled" begin
    with_files() do
        writer = ShardFeed.Writer("c.tar")
        write(writer, "a", "txt" => "1")
        ShardFeed.cancel(writer)
        @test shf_error(() -> write(writer, "b", "txt" => "1")).class === :CANCELLED
        @test shf_error(() -> ShardFeed.finish(writer)).class === :CANCELLED
        close(writer)
        @test !isfile("c.tar") && isempty(hidden())
        ShardFeed.cancel(writer)
    end
end

@testset "a function names shards" begin
    with_files() do
        asked, seen = Int[], ShardFeed.Shard[]
        name(number) = (push!(asked, number); "part-$('a' + number).tar")
        shards = ShardFeed.Writer(name; max_samples=2, first_shard=3,
                                  on_shard=shard -> push!(seen, shard)) do writer
            @test asked == [3]
            for i in 1:5
                write(writer, "k$i", "txt" => "$i")
            end
        end
        @test [shard.url for shard in shards] == ["part-d.tar", "part-e.tar", "part-f.tar"]
        @test seen == shards
        @test asked == [3, 4, 5]
        @test length(everything_of("part-f.tar")) == 1
        # A name twice, also when it would be overwritten.
        writer = ShardFeed.Writer(number -> "twice.tar"; max_samples=1, overwrite=true)
        write(writer, "a", "txt" => "kept")
        error = shf_error(() -> write(writer, "b", "txt" => "1"))
        @test error.class === :USAGE && occursin("a name twice", error.message)
        @test shf_error(() -> ShardFeed.finish(writer)).class === :USAGE
        close(writer)
        @test everything_of("twice.tar") == [("a", ["txt" => b"kept"])]
        # An exception of the function costs nothing: the next call asks it again.
        allowed = Ref(false)
        shards = ShardFeed.Writer(number -> number == 0 || allowed[] ? "late-$number.tar" : Base.error("not yet");
                                  max_samples=1) do writer
            write(writer, "a", "txt" => "1")
            @test_throws ErrorException write(writer, "b", "txt" => "1")
            allowed[] = true
            write(writer, "b", "txt" => "1")
        end
        @test [shard.samples for shard in shards] == [1, 1]
        @test shf_error(() -> ShardFeed.Writer(number -> number)).class === :USAGE
        @test shf_error(() -> ShardFeed.Writer(number -> "")).class === :USAGE
    end
end

@testset "indexes of other tools" begin
    with_files() do
        ShardFeed.Writer("o-%d.tar"; max_samples=2, index_for="dali,energon", wids_index="o.json") do writer
            for i in 1:3
                write(writer, "k$i", "txt" => "$i")
            end
        end
        @test filter(name -> startswith(name, "o"), readdir()) ==
              ["o-0.idx", "o-0.tar", "o-0.tar.idx", "o-1.idx", "o-1.tar", "o-1.tar.idx", "o.json"]
        @test read("o-1.idx", String) == "v1.2 1\ntxt 512 1 k3.txt\n"
        @test filesize("o-0.tar.idx") == 24
    end
end
