# A smoke test of compiled code: julia jit.jl. Nothing here throws: Debian's Julia 1.5.3 crashes on
# exceptions in compiled code.

using ShardFeed

include("files.jl")

function count_bytes(stream)
    samples = bytes = total = 0
    for sample in stream
        samples += 1
        for content in values(sample)
            bytes += length(content)
            for byte in content
                total += byte
            end
        end
    end
    return samples, bytes, total
end

must(condition) = condition || (println("not as it must be"); exit(1))

function main()
    urls = "train-{000..001}.tar"
    samples, bytes, total = ShardFeed.open(count_bytes, urls; epochs=1000, shuffle=4)
    must((samples, bytes) == (6000, 28000) && total > 0)
    ShardFeed.open(urls; shuffle=4, seed=1) do stream
        kept = [keep(sample) for sample in stream]
        must(sort!([String(sample["txt"]) for sample in kept])[1] == "five")
        must(all(haskey(sample, "cls") && !haskey(sample, "jpg") for sample in kept))
        must(get(kept[1], "jpg", nothing) === nothing)
        must(length(ShardFeed.save(stream)) > 10)
    end
    ShardFeed.open(urls; batch=4, decode="cls:int, txt:text", epochs=300) do stream
        must(sum(sum(batch["cls"]) for batch in batches(stream)) == 300 * 21)
    end
    dataset = Dataset(urls; log=nothing)
    keys = Vector{String}(undef, 600)
    Threads.@threads for i in 1:600
        keys[i] = dataset[mod1(i, 6)].key
    end
    must(keys[1:6] == [sample.key for sample in dataset[1:6]] == keys[595:600])
    close(dataset)
    Archive("images.zip") do archive
        must(String(archive["b.txt"]) == "second" && length(get_many(archive, [1, 2])) == 2)
    end
    shards = ShardFeed.Writer("written-%d.tar"; max_samples=100) do writer
        for i in 1:250
            write(writer, "key-$i", "cls" => i, "bin" => zeros(UInt8, i))
        end
        ShardFeed.open(stream -> append!(writer, stream), urls)
    end
    must([shard.samples for shard in shards] == [100, 100, 56])
    must(ShardFeed.open(count_bytes, "written-{0..2}.tar")[1] == 256)
    GC.gc()
    println("compiled code works")
end

with_files(main)
