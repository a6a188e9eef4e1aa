# Datasets: the samples of many shards by number.

"""
    Dataset(urls; options...) <: AbstractVector{SampleCopy}
    Dataset(f, urls; options...)

The samples of many shards (plain tar and ZIP files), a read-only vector of [`SampleCopy`](@ref)s:
nothing has to be released. `dataset[5]`, `dataset["key"]` (`KeyError` when there is none), `rand(dataset)`,
`view(dataset, 1:10)` and what else a vector can do. `dataset[1:10]`, `first(dataset, n)`, `last(dataset, n)`
and [`get_many`](@ref) read with several threads, [`get_batch`](@ref) decodes as well. A sample is read
whenever it is asked for: `collect(dataset)` has them all in memory, and `==` reads them all. Any number of
tasks may read at once.

`opener` opens the URLs, as in [`ShardFeed.open`](@ref); `index="memory"` keeps their indexes in memory.

As a vector it is a data set for MLUtils (`numobs`, `getobs`, `DataLoader(dataset; parallel=true)`).
Keywords are those of [`ShardFeed.open`](@ref) that a data set takes.

```jldoctest
julia> dataset = Dataset("train-{000..001}.tar");

julia> length(dataset), String(dataset["b/0005"]["txt"])
(6, "five")

julia> [sample.key for sample in first(dataset, 2)]
2-element Array{String,1}:
 "a/0001"
 "a/0002"

julia> rand(dataset) in dataset
true

julia> close(dataset)
```
"""
struct Dataset <: AbstractVector{SampleCopy}
    handle::Handle
    urls::Vector{String}
    options::Any
    log::Log
end

function Dataset(urls::URLs; log=log_to_julia, opener=nothing, options...)
    listed = url_list(urls)
    target = Log(log)
    out = PointerOut(C_NULL)
    error = new_error()
    handle = Ref{Handle}()
    server = start_server(opener, target)
    made() = handle[] = Handle(out[], shf_dataset_close, "dataset"; server=server)
    with_options("dataset", options, server) do native
        set_log(native, target, server)
        code = with_texts(listed) do pointers, count
            interruptible(native; made=made, server=server) do
                blocking(server, shf_dataset_open, out, pointers, count, native, error)
            end
        end
        code == OK || pass_on(target)
        _check(code, error, () -> _shards(listed, options))
    end
    pass_on(target)
    return Dataset(handle[], listed, options, target)
end

function Dataset(f::Function, urls; options...)
    dataset = Dataset(urls; options...)
    try
        return f(dataset)
    finally
        close(dataset)
    end
end

Base.isopen(dataset::Dataset) = isopen(dataset.handle)

"""
    close(dataset::Dataset)

Closes the data set, when the calls of other tasks on it are over. Samples that were read stay.
"""
Base.close(dataset::Dataset) = (let_go(dataset.handle); nothing)

Base.length(dataset::Dataset) = Int(using_handle(shf_dataset_sample_count, dataset.handle))
Base.size(dataset::Dataset) = (length(dataset),)
Base.IndexStyle(::Type{Dataset}) = IndexLinear()

function Base.show(io::IO, dataset::Dataset)
    print(io, "Dataset over ", join(Iterators.take(dataset.urls, 3), ", "))
    length(dataset.urls) > 3 && print(io, ", ...")
    print(io, isopen(dataset) ? ": $(length(dataset)) samples" : " (closed)")
end
# That of a vector would read the samples.
Base.show(io::IO, ::MIME"text/plain", dataset::Dataset) = show(io, dataset)

_error_shards(dataset::Dataset) = () -> _shards(dataset.urls, dataset.options)

indexof(dataset::Dataset, key::AbstractString) =
    _index_by(shf_dataset_find, dataset.handle, key, _error_shards(dataset))

Base.haskey(dataset::Dataset, key::AbstractString) = _has(dataset, key)
Base.haskey(dataset::Dataset, i::Integer) = 1 <= i <= length(dataset)

Base.getindex(dataset::Dataset, i::Integer) = _read(dataset, i)
Base.getindex(dataset::Dataset, key::AbstractString) = _read(dataset, key)

function _read(dataset, which)
    i = _number(dataset, which)
    error = new_error()
    out = PointerOut(C_NULL)
    code = using_handle(dataset.handle) do pointer
        answered(dataset.handle.server, shf_dataset_get, pointer, i - 1, out, error)
    end
    _check(code, error, _error_shards(dataset))
    return _taken(out[])
end

# A copy of a sample that is ours, and is released.
function _taken(handle::Pointer)
    sample = Sample(handle, Payload(handle, 1, shf_sample_unref), 1)
    try
        return copy(sample)
    finally
        close(sample)
    end
end

Base.getindex(dataset::Dataset, which::AbstractVector) = get_many(dataset, which)
Base.getindex(dataset::Dataset, ::Colon) = get_many(dataset, eachindex(dataset))
function Base.getindex(dataset::Dataset, mask::AbstractVector{Bool})
    checkbounds(dataset, mask)
    return get_many(dataset, findall(mask))
end

Base.get(dataset::Dataset, key::AbstractString, default) = haskey(dataset, key) ? dataset[key] : default

# As of other vectors, but read with several threads.
_some(n) = n >= 0 ? n : throw(ArgumentError("$n elements were asked for"))
Base.first(dataset::Dataset, n::Integer) = get_many(dataset, 1:min(_some(n), length(dataset)))
Base.last(dataset::Dataset, n::Integer) = get_many(dataset, max(1, length(dataset) - _some(n) + 1):length(dataset))

_sample_numbers(dataset, which) = UInt64[_number(dataset, one) - 1 for one in which]

function get_many(dataset::Dataset, which::AbstractVector)
    numbers = _sample_numbers(dataset, which)
    samples = fill(C_NULL, length(numbers))
    error = new_error()
    code = using_handle(dataset.handle) do pointer
        answered(dataset.handle.server, shf_dataset_get_many, pointer, numbers, length(numbers),
                 samples, error)
    end
    _check(code, error, _error_shards(dataset))
    return SampleCopy[_taken(sample) for sample in samples]
end

"""
    get_batch(dataset, numbers_or_keys; options...) -> Batch

Reads samples and decodes them into a [`Batch`](@ref), as the options `decode`, `ragged` and `missing`
say: those given here, and for the others those of the data set. Crops and flips at random depend on
`seed` and `epoch`: give each epoch its number, `get_batch(dataset, numbers; epoch=3)`, or all of them
have the same ones.

```jldoctest
julia> Dataset("train-{000..001}.tar"; decode="cls:int") do dataset
           get_batch(dataset, [6, 1])["cls"]
       end
2-element Array{Int64,1}:
 6
 1
```
"""
function get_batch(dataset::Dataset, which::AbstractVector; options...)
    numbers = _sample_numbers(dataset, which)
    out = PointerOut(C_NULL)
    error = new_error()
    collect_garbage()
    get(native) = using_handle(dataset.handle) do pointer
        answered(dataset.handle.server, shf_dataset_get_batch, pointer, numbers, length(numbers),
                 native, out, error)
    end
    code = isempty(options) ? get(C_NULL) :
        with_options(get, "dataset", pairs(merge(values(dataset.options), values(options))))
    _check(code, error, _error_shards(dataset))
    return Batch(out[])
end

"""
    ShardFeed.shard(dataset, i) -> (number, first)

Which shard of the expanded list sample `i` is in, and the number of that shard's first sample, both
from 1. Sampling shard by shard reads neighbours together.

```jldoctest
julia> Dataset(dataset -> ShardFeed.shard(dataset, 5), "train-{000..001}.tar")
(2, 4)
```
"""
function shard(dataset::Dataset, which)
    i = _number(dataset, which)
    number, start = NumberOut(0), NumberOut(0)
    using_handle(dataset.handle) do pointer
        shf_dataset_shard(pointer, i - 1, number, start)
    end
    return Int(number[]) + 1, Int(start[]) + 1
end
