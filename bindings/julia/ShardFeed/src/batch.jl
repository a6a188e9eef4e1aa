# Batches: decoded columns of many samples.

"""
    Batch <: AbstractDict{String,AbstractArray}

Decoded columns: `batch["jpg"]`, `keys(batch)`, ... `size(batch["jpg"], ndims)` is the number of
samples, as is `ShardFeed.nrows(batch)`. There are also the keys, `batch["__key__"]`, and the URLs of
the shards, `batch["__url__"]`.

| what was decoded | column |
|---|---|
| images, `.npy`, numbers | an `Array` over the memory of the library, without a copy |
| the same under `ragged=offsets` | [`RaggedColumn`](@ref ShardFeed.RaggedColumn): `column[i]` is row `i` |
| text, JSON | [`TextColumn`](@ref ShardFeed.TextColumn), a vector of `String` |
| bytes, msgpack | `RaggedColumn`, a vector of vectors of `UInt8` |

**Dimensions are in Julia's order**, the first one fastest: what is (N, H, W, C) in C and Python is
(C, W, H, N) here, with the same bytes, so that the samples are along the last dimension, as MLUtils
has them. With `chw`, (N, C, H, W) there is (W, H, C, N) here, what convolutions of Flux and Lux take.

The arrays belong to you: write to them, keep them. Their memory goes back to the library when the
last one is garbage. A batch itself, as a sample, may be used until the loop continues, or
`keep(batch)`.
"""
mutable struct Batch <: AbstractDict{String,AbstractArray}
    handle::Handle
    names::Vector{String}
    columns::Dict{String,AbstractArray} # those that were asked for
    kept::Bool
end

function Batch(pointer::Pointer)
    handle = Handle(pointer, shf_batch_unref, "batch")
    bytes = Ref(NativeBytes())
    names = String[]
    for i in 1:shf_batch_column_count(pointer)
        shf_batch_column(pointer, i - 1, bytes, C_NULL)
        push!(names, _text(bytes[]))
    end
    return Batch(handle, names, Dict{String,AbstractArray}(), false)
end

"""
    Batch(samples; options...)

A batch of samples that were kept: the options `decode`, `ragged`, `missing` say how.

```jldoctest
julia> ShardFeed.open("train-000.tar") do stream
           Batch([keep(sample) for sample in stream]; decode="cls:int")["cls"]
       end
3-element Array{Int64,1}:
 1
 2
 3
```
"""
function Batch(samples::AbstractVector{Sample}; options...)
    isempty(samples) && throw(_usage("a batch has at least one sample"))
    out = PointerOut(C_NULL)
    error = new_error()
    GC.@preserve samples begin
        pointers = Pointer[_alive(sample) for sample in samples]
        with_options("stream", options) do native
            _check(shf_batch_make(out, pointers, length(pointers), native, error), error)
        end
    end
    return Batch(out[])
end

"""
    ShardFeed.nrows(batch) -> Int

The number of samples in a batch.
"""
nrows(batch::Batch) = Int(using_handle(shf_batch_row_count, batch.handle))

Base.length(batch::Batch) = length(batch.names)
Base.haskey(batch::Batch, name::AbstractString) = name in batch.names
Base.isopen(batch::Batch) = isopen(batch.handle)

function Base.getindex(batch::Batch, name::AbstractString)
    i = findfirst(isequal(name), batch.names)
    i === nothing && _throw_absent(name, batch.names)
    return get!(batch.columns, String(name)) do
        using_handle(batch.handle) do pointer
            native = Ref(NativeArray())
            shf_batch_column(pointer, i - 1, C_NULL, native)
            _column(native[], Int(shf_batch_row_count(pointer)), pointer)
        end
    end
end

Base.get(batch::Batch, name::AbstractString, default) = haskey(batch, name) ? batch[name] : default
Base.get(default::Base.Callable, batch::Batch, name::AbstractString) =
    haskey(batch, name) ? batch[name] : default()

function Base.iterate(batch::Batch, i::Int=1)
    i > length(batch.names) && return nothing
    return batch.names[i] => batch[batch.names[i]], i + 1
end

"""
    ShardFeed.rowsizes(batch, name) -> Vector of sizes

The size that each row of a column had before it was padded (option `ragged=pad`), in Julia's order
of dimensions. Empty for other columns.
"""
function rowsizes(batch::Batch, name::AbstractString)
    i = findfirst(isequal(name), batch.names)
    i === nothing && _throw_absent(name, batch.names)
    return using_handle(batch.handle) do pointer
        native = Ref(NativeArray())
        shf_batch_column(pointer, i - 1, C_NULL, native)
        native[].shapes == C_NULL && return Tuple{}[]
        _row_sizes(native[], Int(shf_batch_row_count(pointer)))
    end
end

"""
    keep(batch::Batch) -> Batch

Makes a batch stay usable when the loop continues. The arrays that were taken from it stay anyway.
"""
keep(batch::Batch) = (batch.kept = true; batch)

"""
    close(batch::Batch)

Ends the use of a batch. Arrays that were taken from it stay.
"""
Base.close(batch::Batch) = (empty!(batch.columns); let_go(batch.handle); nothing)

function Base.show(io::IO, batch::Batch)
    isopen(batch) || return print(io, "Batch (released)")
    print(io, "Batch of ", nrows(batch), ": ")
    join(io, ("$name ($(_described(column)))" for (name, column) in batch), ", ")
end
Base.show(io::IO, ::MIME"text/plain", batch::Batch) = show(io, batch)
_described(column::Array) = string(join(size(column), "x"), " ", eltype(column))
_described(column) = string(nameof(typeof(column)))

# ---- Batches of a stream -------------------------------------------------------------------------

struct Batches
    stream::Stream
end

"""
    batches(stream)

The batches of a stream that was opened with the option `batch`, one [`Batch`](@ref) after another,
decoded as its option `decode` says.

```jldoctest
julia> ShardFeed.open("train-{000..001}.tar"; batch=4, decode="cls:int, txt:text") do stream
           for batch in batches(stream)
               println(batch["cls"], " ", batch["txt"][1])
           end
       end
[1, 2, 3, 4] one
[5, 6] five
```
"""
batches(stream::Stream) = Batches(stream)

Base.IteratorSize(::Type{Batches}) = Base.SizeUnknown()
Base.eltype(::Type{Batches}) = Batch

function Base.iterate(all::Batches, previous::Union{Batch,Nothing}=nothing)
    stream = all.stream
    previous === nothing || previous.kept || close(previous)
    _begin(stream)
    received = Ref{Union{Batch,Nothing}}(nothing)
    more = try
        collect_garbage()
        _wait_for(stream, "batch") do pointer
            out = PointerOut(C_NULL)
            without_interrupts() do
                code = shf_stream_next_batch(pointer, out, stream.error)
                code == OK && (received[] = Batch(out[]))
                code
            end
        end
    finally
        _end(stream)
    end
    return more ? (received[], received[]) : nothing
end
