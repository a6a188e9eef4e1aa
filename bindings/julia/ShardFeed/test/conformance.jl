# The conformance suite of all languages (tests/conformance) through this package.
#
#     julia --compile=min conformance.jl [FOLDER CASES.JSON [NAME...]]
#
# FOLDER has the archives. Without it they are made, by the suite in the environment variable
# SHARDFEED_CONFORMANCE or in this checkout.
#
# Python turns the JSON into lines, one value each, that flat_cases() reads: no JSON reader needed.

using ShardFeed

const FLATTEN = raw"""
import json, sys
def lines(value, path):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from lines(inner, path + [key])
    elif isinstance(value, list):
        yield path, str(len(value))
        for number, inner in enumerate(value):
            yield from lines(inner, path + [str(number + 1)])
    else:
        yield path, str(value)
with open(sys.argv[1], encoding="utf-8") as file:
    whole = json.load(file)
assert whole["version"] == 1
out = sys.stdout.buffer
for case in whole["cases"]:
    for path, value in lines(case, []):
        out.write("\x1f".join(path).encode() + b"\x1e" + value.encode("utf-8", "surrogateescape") + b"\0")
    out.write(b"\0")
"""

# Each case is a dictionary from paths such as "expect/error/class" or "urls/1" to texts; a list has its
# length under its own path.
function flat_cases(path)
    cases = Dict{String,String}[]
    for text in split(read(`python3 -c $FLATTEN $path`, String), "\0\0"; keepempty=false)
        case = Dict{String,String}()
        for pair in split(text, '\0')
            at = findfirst('\x1e', pair)
            case[replace(pair[1:prevind(pair, at)], '\x1f' => '/')] = pair[nextind(pair, at):end]
        end
        push!(cases, case)
    end
    return cases
end

list(case, path) = [case["$path/$i"] for i in 1:parse(Int, get(case, path, "0"))]
below(case, path) =
    Dict(name[length(path)+2:end] => value for (name, value) in case if startswith(name, path * "/"))

# ---- Hashing -------------------------------------------------------------------------------------

const XXHASH = "libxxhash.so.0"
new_hash() = (state = ccall((:XXH64_createState, XXHASH), Ptr{Cvoid}, ()); reset_hash(state); state)
reset_hash(state) = ccall((:XXH64_reset, XXHASH), Int32, (Ptr{Cvoid}, UInt64), state, 0)
update_hash(state, data, size) =
    ccall((:XXH64_update, XXHASH), Int32, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t), state, data, size)
hash_value(state) = ccall((:XXH64_digest, XXHASH), UInt64, (Ptr{Cvoid},), state)

mutable struct Run
    case::Dict{String,String}
    folder::String
    hash::Ptr{Cvoid}
    count::Int
    stats::Dict{Symbol,Int}
    out::String # where a case writes; empty: nowhere
end

# Without the folders of this run.
function shown(run::Run, text)
    text = replace(text, run.folder * "/" => "")
    return isempty(run.out) ? text : replace(text, run.out * "/" => "")
end

put(run::Run, number::Integer) = put_memory(run, [number % UInt64])
put(run::Run, numbers::Integer...) = foreach(number -> put(run, number), numbers)
function put_list(run::Run, numbers::Vector{Int64})
    put(run, length(numbers))
    put_memory(run, numbers)
end
put_memory(run::Run, array::Array) =
    GC.@preserve array update_hash(run.hash, Ptr{UInt8}(pointer(array)), sizeof(array))
function put_bytes(run::Run, bytes::AbstractVector{UInt8})
    put(run, length(bytes))
    GC.@preserve bytes update_hash(run.hash, pointer(bytes), length(bytes))
end
function put_text(run::Run, text::String)
    put(run, sizeof(text))
    GC.@preserve text update_hash(run.hash, pointer(text), sizeof(text))
end
put_url(run::Run, url::String) = put_text(run, shown(run, url))

function put_sample(run::Run, sample)
    put_text(run, sample.key)
    put_url(run, sample.shard)
    put(run, length(sample))
    for (name, bytes) in sample
        put_text(run, name)
        put_bytes(run, bytes)
    end
end

# The kinds and dtypes of columns are not to be seen in Julia: types are. The native table has both.
function put_batch(run::Run, batch)
    put(run, ShardFeed.nrows(batch), length(batch))
    for (number, name) in enumerate(keys(batch))
        put_text(run, name)
        column = batch[name]
        if name == "__url__"
            foreach(url -> put_url(run, url), column)
        else
            native = Ref(ShardFeed.NativeArray())
            ShardFeed.shf_batch_column(batch.handle.pointer, number - 1, C_NULL, native)
            put_column(run, column, native[], batch, name)
        end
    end
end

# What Julia has of a column, in the terms of C.
function put_column(run::Run, column, native, batch, name)
    flat = column isa Array ? column : column.values
    eltype(flat) === ShardFeed._DTYPES[native.dtype+1] || error("$name: $(eltype(flat))")
    put(run, native.kind, native.dtype, native.row_ndim)
    shape = column isa Array ? reverse(size(column)) : (length(flat),)
    put(run, length(shape), shape...)
    put(run, sizeof(flat))
    put_memory(run, flat)
    put_list(run, column isa Array ? Int64[] : column.offsets)
    sizes = column isa ShardFeed.RaggedColumn ? row_sizes(column, native) :
            column isa Array ? ShardFeed.rowsizes(batch, name) : []
    put_list(run, Int64[n for size in sizes for n in reverse(size)])
end
row_sizes(column, native) = native.shapes == C_NULL ? [] : [size(row) for row in column]

# ---- Kinds ---------------------------------------------------------------------------------------

in_folder(run::Run, url) =
    occursin("\$FOLDER", url) || occursin("://", url) ? replace(url, "\$FOLDER" => run.folder) : run.folder * "/" * url
urls(run::Run, case=run.case) = [in_folder(run, url) for url in list(case, "urls")]
keywords(run::Run, case=run.case) =
    [Symbol(name) => replace(value, "\$FOLDER" => run.folder) for (name, value) in below(case, "options")]
stop_of(run::Run) = parse(Int, run.case["stop"])

open_stream(f, run::Run; more...) = ShardFeed.open(f, urls(run); log=nothing, keywords(run)..., more...)

function take(run::Run, samples, put_one=put_sample)
    for sample in samples
        put_one(run, sample)
        run.count += 1
    end
end

function run_stream(run::Run)
    open_stream(run) do stream
        try
            take(run, stream)
        finally
            run.stats = ShardFeed.stats(stream)
        end
    end
end

function resumed(run::Run, open_one, each, put_one)
    saved = open_one(stream -> begin
        take(run, Iterators.take(each(stream), stop_of(run)), put_one)
        ShardFeed.save(stream)
    end)
    open_one(stream -> take(run, each(ShardFeed.restore!(stream, saved)), put_one))
end

run_resume(run::Run) = resumed(run, f -> open_stream(f, run), identity, put_sample)
run_resume_batches(run::Run) = resumed(run, f -> open_stream(f, run), batches, put_batch)
run_batches(run::Run) = open_stream(stream -> take(run, batches(stream), put_batch), run)

function run_merge(run::Run)
    before, after = parse.(Int, list(run.case, "consumers"))
    states = [open_stream(run; world_size=before, rank=rank) do stream
        take(run, Iterators.take(stream, stop_of(run)))
        ShardFeed.save(stream)
    end for rank in 0:before-1]
    merged = ShardFeed.merge_states(states)
    for rank in 0:after-1
        open_stream(run; world_size=after, rank=rank) do stream
            take(run, ShardFeed.restore!(stream, merged))
        end
    end
end

function run_mix(run::Run)
    function open_mix(f)
        count = length(Set(first(split(name, '/')) for name in keys(below(run.case, "parts"))))
        parts = [below(run.case, "parts/$i") for i in 1:count]
        streams = [ShardFeed.open(urls(run, part); log=nothing, keywords(run, part)...) for part in parts]
        weights = haskey(run.case, "weights") ? parse.(Float64, list(run.case, "weights")) : nothing
        try
            return ShardFeed.mix(f, streams; weights=weights, keywords(run)...)
        finally
            foreach(close, streams)
        end
    end
    haskey(run.case, "stop") || return open_mix(stream -> take(run, stream))
    resumed(run, open_mix, identity, put_sample)
end

function run_archive(run::Run)
    Archive(urls(run)[1]; keywords(run)...) do archive
        for (i, name) in enumerate(keys(archive))
            bytes = archive[i]
            put_text(run, name)
            put_bytes(run, bytes)
            run.count += 1
        end
        foreach(name -> put(run, indexof(archive, name) - 1), list(run.case, "find"))
    end
end

function run_members(run::Run)
    ShardFeed.Members(urls(run)[1]; keywords(run)...) do members
        for member in members
            bytes = read(member)
            put_text(run, member.name)
            put(run, findfirst(==(member.kind), ShardFeed._MEMBER_KINDS) - 1)
            for number in (member.mode, member.uid, member.gid, member.mtime_ns)
                put(run, something(number, typemax(UInt64)))
            end
            foreach(text -> put_text(run, something(text, "")), (member.link, member.user, member.group))
            put_bytes(run, bytes)
            run.count += 1
        end
    end
end

function run_dataset(run::Run)
    Dataset(urls(run); log=nothing, keywords(run)...) do dataset
        run.count = length(dataset)
        foreach(number -> put_sample(run, dataset[parse(Int, number)+1]), list(run.case, "positions"))
        foreach(key -> put(run, indexof(dataset, key) - 1), list(run.case, "find"))
    end
end

run_expand(run::Run) =
    take(run, ShardFeed.expand_urls(urls(run); keywords(run)...), put_url)

function run_plan(run::Run)
    plan = ShardFeed.plan(urls(run); keywords(run)...)
    put_url(run, plan.text)
    put(run, length(plan.warnings))
    foreach(warning -> put_url(run, warning), plan.warnings)
    foreach(consumer -> put_share(run, consumer), plan.consumers)
end

function put_share(run::Run, consumer)
    put(run, (something(value, typemax(UInt64)) for value in consumer)...)
    run.count += 1
end

function run_simulate(run::Run)
    numbers(name) = parse.(UInt64, list(run.case, name))
    bytes = haskey(run.case, "bytes") ? numbers("bytes") : nothing
    plan = ShardFeed.simulate_plan(numbers("shards"); bytes=bytes, keywords(run)...)
    for (number, consumer) in enumerate(plan.consumers)
        put_share(run, consumer)
        reads = ShardFeed.reads(plan, number)
        put(run, length(reads))
        for read in reads
            put(run, read.shard - 1, read.samples, first(read.taken) - 1, last(read.taken) - 1)
        end
    end
end

function run_write(run::Run)
    run.out = mktempdir(; cleanup=false) # Julia 1.5 would clean up inside exit(), and throw there
    try
        write_into(run, run.out)
    finally
        rm(run.out; recursive=true)
    end
end

function write_into(run::Run, out)
    options = [name => replace(value, "\$OUT/" => "$out/") for (name, value) in keywords(run)]
    names = list(run.case, "names")
    pattern = isempty(names) ? "$out/$(run.case["pattern"])" : number -> "$out/$(names[number+1])"
    writer = ShardFeed.Writer(pattern; options...)
    for i in 1:parse(Int, run.case["samples"])
        parts = map(hex2bytes, list(run.case, "samples/$i"))
        fields = [String(copy(parts[j])) => parts[j+1] for j in 2:2:length(parts)]
        try
            write(writer, String(copy(parts[1])), fields)
        catch error
            error isa ShardFeedError || rethrow()
            put_text(run, string(error.class))
        end
    end
    shards = ShardFeed.finish(writer)
    for shard in shards
        put_url(run, shard.url)
        put(run, shard.samples)
    end
    for name in readdir(out)
        put_text(run, name)
        splitext(name)[2] in (".tar", ".idx") && put_bytes(run, read(joinpath(out, name)))
    end
    ShardFeed.open(stream -> take(run, stream), [shard.url for shard in shards])
end

const KINDS = Dict(
    "write" => run_write,
    "stream" => run_stream, "resume" => run_resume, "batches" => run_batches,
    "resume_batches" => run_resume_batches, "merge" => run_merge, "mix" => run_mix,
    "archive" => run_archive, "members" => run_members, "dataset" => run_dataset, "expand" => run_expand, "plan" => run_plan,
    "simulate" => run_simulate,
)

# ---- Running -------------------------------------------------------------------------------------

# What came of a case, as its "expect" has it.
function result(case, folder, hash)
    reset_hash(hash)
    run = Run(case, folder, hash, 0, Dict{Symbol,Int}(), "")
    found = Dict{String,String}()
    try
        KINDS[case["kind"]](run)
    catch error
        error isa ShardFeedError || rethrow()
        found["error/class"] = string(error.class)
        found["error/message"] = shown(run, error.message)
        error.offset === nothing || (found["error/offset"] = string(error.offset))
    end
    found["count"] = string(run.count)
    found["digest"] = string(hash_value(hash); base=16, pad=16)
    for name in keys(below(case, "expect/stats"))
        found["stats/$name"] = string(get(run.stats, Symbol(name), nothing))
    end
    return found
end

function main(folder, path, names...)
    occursin("://", folder) || (folder = realpath(folder))
    hash = new_hash()
    passed = failed = 0
    for case in flat_cases(path)
        isempty(names) || case["name"] in names || continue
        found = try
            result(case, folder, hash)
        catch error
            Dict("not a ShardFeedError" => sprint(showerror, error))
        end
        if found == below(case, "expect")
            passed += 1
        else
            failed += 1
            println(case["name"], ": ", below(case, "expect"), " expected, not ", found)
        end
    end
    println(passed, " cases passed", failed == 0 ? "" : ", $failed failed")
    return failed == 0 && passed > 0
end

function main()
    suite = get(ENV, "SHARDFEED_CONFORMANCE", joinpath(@__DIR__, "../../../../tests/conformance"))
    folder = mktempdir(; cleanup=false) # Julia 1.5 would clean up inside exit(), and throw there
    try
        run(`python3 $suite/make_archives.py $folder`)
        return main(folder, "$suite/cases.json")
    finally
        rm(folder; recursive=true)
    end
end

main(ARGS...) || exit(1)
