# Archives and data sets.

@testset "archives" begin
    with_files() do
        write_tar("x.tar", ["a.txt" => "first", "d/b.txt" => "second", "e" => ""])
        for (url, names) in (("x.tar", ["a.txt", "d/b.txt", "e"]), ("images.zip", ["a.txt", "b.txt"]))
            Archive(url) do archive
                @test length(archive) == length(names) && collect(keys(archive)) == names
                @test String(archive["a.txt"]) == "first" && archive[1] isa Vector{UInt8}
                @test String(archive[2]) == "second" && indexof(archive, names[2]) == 2
                @test haskey(archive, "a.txt") && !haskey(archive, "c.txt") && haskey(archive, 2)
                @test get(archive, "c.txt", nothing) === nothing && String(get(archive, 1, nothing)) == "first"
                @test_throws KeyError archive["c.txt"]
                @test shf_error(() -> indexof(archive, "c.txt")).class === :NOT_FOUND
                @test_throws BoundsError archive[0]
                @test_throws BoundsError archive[length(names)+1]
                @test [length(content) for content in archive][1:2] == [5, 6]
                @test String.(archive[[2, 1, 2]]) == ["second", "first", "second"]
                @test String.(archive[1:2]) == String.(get_many(archive, ["a.txt", names[2]]))
                @test archive[Int[]] == []
                @test ShardFeed.member(archive, 1).name == "a.txt"
                @test ShardFeed.member(archive, "a.txt").kind === :file
                @test archive[end] == archive[length(archive)]
                @test sprint(show, archive) == "Archive of $url: $(length(names)) members"
            end
        end
        @test ShardFeed.member(Archive("x.tar"), 1).crc32 === nothing
        @test ShardFeed.member(Archive("images.zip"), 1).crc32 isa UInt32
        @test shf_error(() -> Archive("missing.zip")).shard == "missing.zip"
        write("broken.zip", read("images.zip")[1:40])
        @test shf_error(() -> Archive("broken.zip")) isa ShardFeedError
        flipped = read("images.zip")
        at = first(findfirst("first", String(copy(flipped))))
        flipped[at] ⊻= 0x01
        archive = Archive(flipped)
        error = shf_error(() -> archive["a.txt"])
        @test error.class === :INTEGRITY && error.member == "a.txt"
        @test shf_error(() -> get_many(archive, [2, 1])).class === :INTEGRITY
    end
end

@testset "archives in memory" begin
    with_files() do
        archive = Archive(read("images.zip"))
        GC.gc()
        @test String(archive["b.txt"]) == "second"
        bytes = view(archive, "b.txt")
        @test String(bytes) == "second" && bytes isa ShardFeed.Bytes
        @test shf_error(() -> view(Archive("images.zip"), 1)).class === :UNSUPPORTED
        kept = view(Archive(read("images.zip")), 1) # the view is all that holds it
        GC.gc()
        @test String(kept) == "first"
        close(archive)
        @test String(bytes) == "second" # it holds the memory
        @test shf_error(() -> view(archive, 1)).class === :USAGE
    end
end

look_at_view(archive) = String(view(archive, "b.txt"))

@testset "a closed archive is freed with its last view" begin
    with_files() do
        archive = Archive(read("images.zip"))
        @test look_at_view(archive) == "second"
        close(archive)
        GC.gc()
        @test archive.handle.uses[] == 0
    end
end

@testset "data sets" begin
    with_files() do
        write_zip("z.zip", ["c/1.cls" => "7", "c/1.txt" => "seven"])
        Dataset(["train-{000..001}.tar", "z.zip"]; decode="cls:int,txt:text") do dataset
            @test length(dataset) == 7 && keys(dataset) == 1:7
            @test dataset[1] isa SampleCopy && dataset[1].key == "a/0001"
            @test String(copy(dataset["b/0005"]["txt"])) == "five" && dataset[end].key == "c/1"
            @test indexof(dataset, "c/1") == 7 && haskey(dataset, "c/1") && !haskey(dataset, "c/2")
            @test_throws KeyError dataset["c/2"]
            @test_throws BoundsError dataset[8]
            @test_throws BoundsError get_many(dataset, [1, 0])
            @test [sample.key for sample in dataset[[7, 2]]] == ["c/1", "a/0002"]
            @test [sample.key for sample in dataset] == [sample.key for sample in get_many(dataset, 1:7)]
            @test get_batch(dataset, [7, 1])["cls"] == [7, 1]
            @test get_batch(dataset, ["b/0004"])["txt"] == ["four"]
            @test get_batch(dataset, [7, 1]; decode="cls:float", epoch=3)["cls"] == [7.0, 1.0]
            @test shf_error(() -> get_batch(dataset, [1]; shuffle=3)).class === :USAGE
            @test shf_error(() -> get_batch(dataset, [1]; epoch=-1)).class === :USAGE
            @test ShardFeed.shard(dataset, 5) == (2, 4) && ShardFeed.shard(dataset, "c/1") == (3, 7)
            @test dataset[6].shard == "train-001.tar" && dataset[6].shard_number == 1
            @test sprint(show, dataset) == "Dataset over train-{000..001}.tar, z.zip: 7 samples"
        end
        @test shf_error(() -> Dataset("missing.tar")).class === :IO
        @test shf_error(() -> Dataset("missing.tar")).shard == "missing.tar"
        @test shf_error(() -> Dataset("train-000.tar"; index="require", index_dir="no")).class === :NOT_FOUND
        # What MLUtils falls back to for types that it does not know.
        numobs(data) = length(data)
        getobs(data, i) = data[i]
        Dataset("train-000.tar") do dataset
            @test numobs(dataset) == 3 && getobs(dataset, 2).key == "a/0002"
            @test [sample.key for sample in getobs(dataset, [3, 1])] == ["a/0003", "a/0001"]
        end
    end
end

@testset "a data set is a vector" begin
    with_files() do
        names(samples) = [sample.key for sample in samples]
        all_keys = ["a/0001", "a/0002", "a/0003", "b/0004", "b/0005", "b/0006"]
        Dataset("train-{000..001}.tar"; log=nothing) do dataset
            @test dataset isa AbstractVector{SampleCopy} && eltype(dataset) === SampleCopy
            @test size(dataset) == (6,) && axes(dataset) == (Base.OneTo(6),) && ndims(dataset) == 1
            @test IndexStyle(dataset) === IndexLinear() && eachindex(dataset) == 1:6 && lastindex(dataset) == 6
            @test names(dataset[:]) == all_keys && names(dataset) == all_keys && names(collect(dataset)) == all_keys
            @test names(first(dataset, 2)) == all_keys[1:2] && names(last(dataset, 2)) == all_keys[5:6]
            @test names(first(dataset, 10)) == all_keys == names(last(dataset, 10))
            @test isempty(first(dataset, 0)) && isempty(last(dataset, 0))
            @test first(dataset, 2) isa Vector{SampleCopy}
            @test first(dataset).key == all_keys[1] && last(dataset).key == all_keys[end]
            @test_throws ArgumentError first(dataset, -1)
            @test_throws ArgumentError last(dataset, -1)
            @test names(dataset[[false, true, false, false, false, true]]) == all_keys[[2, 6]]
            @test_throws BoundsError dataset[[true, false]]
            @test names(dataset[2:3]) == all_keys[2:3] && dataset[CartesianIndex(4)].key == all_keys[4]
            middle = view(dataset, 2:4)
            @test names(middle) == all_keys[2:4] && middle[end].key == all_keys[4] && names(middle[2:3]) == all_keys[3:4]
            @test_throws BoundsError view(dataset, 5:7)
            @test rand(dataset) in dataset && all(sample -> sample.key in all_keys, rand(dataset, 5))
            @test names(reverse(dataset)) == reverse(all_keys) && names(Iterators.reverse(dataset)) == reverse(all_keys)
            @test [names(part) for part in Iterators.partition(dataset, 4)] == [all_keys[1:4], all_keys[5:6]]
            @test map(sample -> sample.key, dataset) == all_keys && count(sample -> true, dataset) == 6
            @test [i => sample.key for (i, sample) in pairs(dataset)] == collect(pairs(all_keys))
            @test findfirst(sample -> sample.key == all_keys[3], dataset) == 3
            @test get(dataset, 7, nothing) === nothing && get(dataset, 6, nothing).key == all_keys[6]
            @test get(dataset, "c/1", nothing) === nothing && get(dataset, all_keys[2], nothing).key == all_keys[2]
            @test dataset == collect(dataset) && similar(dataset) isa Vector{SampleCopy}
            @test_throws Exception dataset[1] = dataset[2]
            @test repr(MIME("text/plain"), dataset) == sprint(show, dataset)
            @test summary(dataset) == "6-element Dataset"
        end
    end
end

# A method for data sets that is ambiguous with one for vectors fails in the first call that means both.
@testset "no method for data sets is ambiguous" begin
    functions = (getindex, get, haskey, first, last, length, size, show, iterate, close, isopen, view)
    pairs = [(ours, other) for f in functions for ours in methods(f) if ours.module === ShardFeed
             for other in methods(f) if other !== ours]
    @test length(pairs) > 100
    @test filter(pair -> Base.isambiguous(pair...), pairs) == []
end

@testset "many tasks read at once" begin
    with_files() do
        Dataset("train-{000..001}.tar") do dataset
            found = Vector{String}(undef, 60)
            @sync for i in 1:60
                Threads.@spawn found[i] = dataset[mod1(i, 6)].key
            end
            @test found == [dataset[mod1(i, 6)].key for i in 1:60]
        end
    end
end

@testset "indexes and plans" begin
    with_files() do
        ShardFeed.export_index("train-000.tar", :dali_1_2, "x.idx")
        @test startswith(read("x.idx", String), "v1.2 ")
        ShardFeed.import_index("train-000.tar", "dali_1_2", "x.idx")
        @test isfile("train-000.tar.sfidx")
        @test shf_error(() -> ShardFeed.export_index("train-000.tar", :csv, "x.csv")).class === :USAGE
        ShardFeed.build_index("train-001.tar")
        plan = ShardFeed.plan("train-{000..001}.tar"; world_size=2)
        @test [(c.rank, c.shards, c.samples) for c in plan.consumers] == [(0, 1, 3), (1, 1, 3)]
        @test !isempty(plan.text) && occursin("2", sprint(show, plan))
        plan = ShardFeed.plan("train-000.tar"; world_size=2)
        @test any(occursin("fewer shards", warning) for warning in plan.warnings) || !isempty(plan.warnings)
        @test shf_error(() -> ShardFeed.plan("train-{000..001}.tar"; lanes=3, world_size=2, even="drop")).class === :USAGE
        @test [read.samples for read in ShardFeed.reads(ShardFeed.plan("train-{000..001}.tar"), 1)] == [3, 3]
    end
end

@testset "plans of shards that are not there" begin
    plan = ShardFeed.simulate_plan([10, 20, 30, 40]; bytes=(1, 2, 3, 4), world_size=2)
    @test [(c.rank, c.samples, c.bytes) for c in plan.consumers] == [(0, 40, 4), (1, 60, 6)]
    @test plan.shards[4] == (samples=40, bytes=4)
    @test [(r.shard, r.samples, r.taken) for r in ShardFeed.reads(plan, 2)] == [(2, 20, 1:20), (4, 40, 21:60)]
    @test ShardFeed.simulate_plan(5:5).shards == [(samples=5, bytes=nothing)]
    @test_throws BoundsError ShardFeed.reads(plan, 0)
    @test_throws BoundsError ShardFeed.reads(plan, 3)
    for wrong in (() -> ShardFeed.simulate_plan(Int[]), () -> ShardFeed.simulate_plan([1, -1]),
                  () -> ShardFeed.simulate_plan([2^32]), () -> ShardFeed.simulate_plan([1, 2]; bytes=[1]),
                  () -> ShardFeed.reads(ShardFeed.simulate_plan([1]; epoch_samples=1), 1))
        @test shf_error(wrong).class === :USAGE
    end
end
