# Bytes that stay where the library has them.

# Memory of the library that views look into. `live` is the number of the sample whose bytes may be
# looked at, so that going on to the next sample of a block costs one store; RELEASED when it is gone.
mutable struct Payload
    pointer::Handle_t
    live::Int
    unref::Any # nothing: the memory is not ours, or the owner's
    owner::Any # what has to stay as long as views do
end

const RELEASED = -1

function Payload(pointer::Handle_t, live::Int, unref)
    payload = Payload(pointer, live, unref, nothing)
    return finalizer(release, payload) # the net only
end

function release(payload::Payload)
    payload.live = RELEASED
    pointer, payload.pointer = payload.pointer, C_NULL
    pointer == C_NULL || payload.unref(pointer)
    return
end

"""
    Bytes <: DenseVector{UInt8}

The bytes of a field where the library has them, without a copy; read only. They keep their memory
alive, and may be looked at as long as their [`Sample`](@ref) may: until the stream goes on to the
next one, unless it was kept. `copy(bytes)` is a `Vector{UInt8}`, `String(bytes)` a text.

```jldoctest
julia> ShardFeed.open("train-000.tar") do stream
           sample = first(stream)
           String(sample["txt"]), sample["txt"][1], length(sample["txt"])
       end
("one", 0x6f, 3)
```
"""
struct Bytes <: DenseVector{UInt8}
    data::Ptr{UInt8}
    size::Int
    payload::Payload
    number::Int
end

Bytes(bytes::NativeBytes, payload::Payload, number::Int) =
    Bytes(bytes.data, Int(bytes.size), payload, number)

@inline _live(payload::Payload, number::Int) = payload.live == number || _gone(payload)
@noinline _gone(payload) = throw(_usage(
    "these bytes are not there any more: the sample was released when its stream went on or was " *
    "closed; help: take copy(sample) or keep(sample) inside the loop",
))

Base.size(bytes::Bytes) = (bytes.size,)
Base.length(bytes::Bytes) = bytes.size
Base.IndexStyle(::Type{Bytes}) = IndexLinear()
Base.elsize(::Type{Bytes}) = 1
Base.strides(::Bytes) = (1,)

@inline function Base.getindex(bytes::Bytes, i::Int)
    @boundscheck checkbounds(bytes, i)
    _live(bytes.payload, bytes.number)
    return unsafe_load(bytes.data, i)
end

Base.setindex!(::Bytes, value, i::Int) =
    throw(_usage("bytes of a sample are read only; help: change copy(bytes)"))

function Base.unsafe_convert(::Type{Ptr{UInt8}}, bytes::Bytes)
    _live(bytes.payload, bytes.number)
    return bytes.data
end

function Base.Vector{UInt8}(bytes::Bytes)
    copied = Vector{UInt8}(undef, bytes.size)
    source = Base.unsafe_convert(Ptr{UInt8}, bytes)
    GC.@preserve bytes copied unsafe_copyto!(pointer(copied), source, bytes.size)
    return copied
end
Base.copy(bytes::Bytes) = Vector{UInt8}(bytes)
Base.collect(bytes::Bytes) = Vector{UInt8}(bytes)

function Base.String(bytes::Bytes)
    source = Base.unsafe_convert(Ptr{UInt8}, bytes)
    return GC.@preserve bytes bytes.size == 0 ? "" : unsafe_string(source, bytes.size)
end

function Base.write(io::IO, bytes::Bytes)
    source = Base.unsafe_convert(Ptr{UInt8}, bytes)
    return GC.@preserve bytes bytes.size == 0 ? 0 : Int(unsafe_write(io, source, bytes.size))
end
