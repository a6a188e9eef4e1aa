# Batches: columns as arrays in Julia's order of dimensions.

@testset "dimensions are in Julia's order" begin
    with_files() do
        arrays = [reshape(Float32.(1:24) .+ 100n, 2, 3, 4) for n in 1:5]
        write_arrays("even.tar", arrays, "<f4")
        kept = ShardFeed.open("even.tar"; batch=2, decode="npy:npy") do stream
            sizes = Int[]
            kept = Array{Float32,4}[]
            for batch in batches(stream)
                column = batch["npy"]
                @test column isa Array{Float32,4} && column === batch["npy"]
                @test size(column)[1:3] == (2, 3, 4)
                push!(sizes, size(column, 4))
                @test ShardFeed.nrows(batch) == size(column, 4)
                push!(kept, column)
            end
            @test sizes == [2, 2, 1]
            kept
        end
        # The arrays outlive batches and stream, and are ours to write to.
        GC.gc()
        @test cat(kept...; dims=4) == cat(arrays...; dims=4)
        flat = vec(kept[1])
        kept = nothing
        GC.gc()
        @test flat[1] == 101
        flat .= 0
        @test all(iszero, flat)
    end
end

@testset "images, numbers, texts" begin
    with_files() do
        red = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
               0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53,
               0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0x00,
               0x00, 0x03, 0x01, 0x01, 0x00, 0xc9, 0xfe, 0x92, 0xef, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e,
               0x44, 0xae, 0x42, 0x60, 0x82]
        members = Pair{String,Any}[]
        for n in 1:3
            push!(members, "k$n.png" => red, "k$n.cls" => "$n", "k$n.txt" => n == 2 ? "" : "é$n",
                  "k$n.json" => "{\"n\":$n}", "k$n.bin" => fill(UInt8(n), n))
        end
        write_tar("all.tar", members)
        ShardFeed.open("all.tar"; batch=3, decode="auto") do stream
            batch = first(batches(stream))
            @test collect(keys(batch)) == ["png", "cls", "txt", "json", "bin", "__key__", "__url__"]
            @test length(batch) == 7 && haskey(batch, "png") && !haskey(batch, "jpg")
            @test size(batch["png"]) == (3, 1, 1, 3) && eltype(batch["png"]) === UInt8
            @test batch["png"][:, 1, 1, 1] == [255, 0, 0]
            @test batch["cls"] == [1, 2, 3] && batch["cls"] isa Vector{Int64}
            @test batch["txt"] == ["é1", "", "é3"] && batch["txt"] isa AbstractVector{String}
            @test batch["json"] == ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]
            @test batch["bin"] == [[1], [2, 2], [3, 3, 3]] && batch["bin"][3] isa AbstractVector{UInt8}
            @test batch["__key__"] == ["k1", "k2", "k3"]
            @test_throws KeyError batch["jpg"]
            @test occursin("there are: \"png\", \"cls\"", refusal(() -> batch["jpg"]))
            @test get(batch, "jpg", 1) == 1 && get(() -> 2, batch, "jpg") == 2
            @test occursin("Batch of 3: png (3x1x1x3 UInt8), cls (3 Int64), txt (TextColumn)", repr(batch))
            @test_throws BoundsError batch["txt"][4]
            @test_throws BoundsError batch["bin"][0]
        end
        for (layout, dimensions) in (("", (3, 4, 2, 3)), ("/chw", (4, 2, 3, 3))) # C, W, H, N and W, H, C, N
            ShardFeed.open("all.tar"; batch=3, decode="png:image/rgb8$layout/resize=4x2") do stream
                pixels = first(batches(stream))["png"]
                @test size(pixels) == dimensions
                channel(c) = selectdim(pixels, layout == "" ? 1 : 3, c)
                @test all(channel(1) .== 255) && all(channel(2) .== 0) && all(channel(3) .== 0)
            end
        end
    end
end

@testset "rows of unequal shape" begin
    with_files() do
        arrays = [reshape(Int16.(1:2n), 2, n) for n in 1:3]
        write_arrays("ragged.tar", arrays, "<i2")
        ShardFeed.open("ragged.tar"; batch=3, decode="npy:npy", ragged="offsets") do stream
            column = first(batches(stream))["npy"]
            @test column isa ShardFeed.RaggedColumn && length(column) == 3
            @test column == arrays && column[2] isa AbstractMatrix{Int16}
            @test column.values == vcat(vec.(arrays)...) && column.offsets == [0, 2, 6, 12]
        end
        ShardFeed.open("ragged.tar"; batch=3, decode="npy:npy", ragged="pad") do stream
            batch = first(batches(stream))
            @test size(batch["npy"]) == (2, 3, 3)
            @test ShardFeed.rowsizes(batch, "npy") == [(2, 1), (2, 2), (2, 3)]
            @test batch["npy"][:, 1:2, 2] == arrays[2] && all(iszero, batch["npy"][:, 3, 2])
            @test isempty(ShardFeed.rowsizes(batch, "__key__"))
        end
        lists = [Float64.(1:n) for n in 1:3]
        write_arrays("lists.tar", lists, "<f8")
        ShardFeed.open("lists.tar"; batch=3, decode="npy:npy", ragged="offsets") do stream
            @test first(batches(stream))["npy"] == lists
        end
        error = shf_error() do
            ShardFeed.open(s -> collect(batches(s)), "ragged.tar"; batch=3, decode="npy:npy")
        end
        @test error.class === :FORMAT
    end
end

@testset "types" begin
    with_files() do
        for (T, descr) in ((Bool, "|b1"), (Int8, "|i1"), (UInt16, "<u2"), (Int32, "<i4"), (UInt64, "<u8"),
                           (Float16, "<f2"), (Float64, "<f8"), (ComplexF32, "<c8"), (ComplexF64, "<c16"))
            arrays = [T[1, 0, 1], T[0, 0, 1]]
            write_arrays("types.tar", arrays, descr)
            ShardFeed.open("types.tar"; batch=2, decode="npy:npy") do stream
                @test first(batches(stream))["npy"] == hcat(arrays...)
                @test eltype(first(batches(ShardFeed.open("types.tar"; batch=2, decode="npy")))["npy"]) === T
            end
        end
    end
end

@testset "a batch is released when the loop goes on" begin
    with_files() do
        ShardFeed.open("train-{000..001}.tar"; batch=2, decode="cls:int") do stream
            all = collect(batches(stream))
            @test length(all) == 3 && !any(isopen, all)
            error = shf_error(() -> all[1]["cls"])
            @test error.class === :USAGE && repr(all[1]) == "Batch (released)"
            @test shf_error(() -> ShardFeed.nrows(all[3])).class === :USAGE
        end
        ShardFeed.open("train-{000..001}.tar"; batch=2, decode="cls:int") do stream
            batch = first(batches(stream))
            close(batch)
            close(batch)
            @test shf_error(() -> batch["cls"]).class === :USAGE
        end
        ShardFeed.open("train-{000..001}.tar"; batch=2, decode="cls:int") do stream
            all = [keep(batch) for batch in batches(stream)]
            @test [batch["cls"] for batch in all] == [[1, 2], [3, 4], [5, 6]]
        end
    end
end

@testset "batches are saved and restored" begin
    with_files() do
        urls, options = "train-{000..001}.tar", (batch=2, decode="cls:int", shuffle=3, seed=1)
        labels(stream) = [copy(batch["cls"]) for batch in batches(stream)]
        whole = ShardFeed.open(labels, urls; options...)
        saved = ShardFeed.open(urls; options...) do stream
            iterate(batches(stream))
            ShardFeed.save(stream)
        end
        rest = ShardFeed.open(stream -> labels(ShardFeed.restore!(stream, saved)), urls; options...)
        @test rest == whole[2:end]
    end
end

@testset "batches of samples, and of a stream without batches" begin
    with_files() do
        ShardFeed.open("train-000.tar") do stream
            @test shf_error(() -> first(batches(stream))).class === :USAGE
        end
        ShardFeed.open("train-000.tar"; batch=2) do stream
            @test shf_error(() -> first(stream)).class === :USAGE
        end
        samples = ShardFeed.open(stream -> [keep(sample) for sample in stream], "train-000.tar")
        batch = Batch(samples; decode="cls:int,txt:text")
        @test batch["cls"] == [1, 2, 3] && batch["txt"] == ["one", "two", "three"]
        @test shf_error(() -> Batch(Sample[])).class === :USAGE
        @test shf_error(() -> Batch(samples; decode="cls:image")).class in (:FORMAT, :UNSUPPORTED, :USAGE)
        close(samples[2])
        @test shf_error(() -> Batch(samples; decode="cls:int")).class === :USAGE
    end
end

@testset "memory of arrays is collected" begin
    with_files() do
        write_arrays("large.tar", [zeros(Float64, 256, 1024) for _ in 1:4], "<f8")
        most = 0
        ShardFeed.open("large.tar"; batch=4, epochs=100, decode="npy") do stream
            for batch in batches(stream) # 100 of 8 MiB
                batch["npy"][1] = 1
                most = max(most, ShardFeed._held[])
            end
        end
        @test 8 << 20 <= most <= ShardFeed._ENOUGH + 32 << 20
    end
end
