# Bytes that stay where the library has them.

# Memory of the library that views look into. `live` is the number of the sample whose bytes may be
# looked at, so that moving to the next sample of a block costs one store; RELEASED when it is gone.
#
# Memory is given back at once only when no other task can be reading it. Such a task first sets
# `shared` and then looks whether its sample is still live; release() ends the life of all samples and
# then looks at `shared`. With a fence between the two steps of each, one of them sees the other.
mutable struct Payload
    pointer::Pointer
    live::Int
    unref::Any # nothing: there is no memory
    owner::Any # what has to stay as long as views do
    task::Task # which received it
    shared::Bool
    size::Int  # bytes counted in _held
end

const RELEASED = -1

function Payload(pointer::Pointer, live::Int, unref; size=0, owner=nothing)
    payload = Payload(pointer, live, unref, owner, current_task(), false, size)
    if pointer != C_NULL
        Threads.atomic_add!(_held, size)
        finalizer(give_back, payload) # the net, and for what is shared
    end
    return payload
end

function give_back(payload::Payload)
    pointer, payload.pointer = payload.pointer, C_NULL
    pointer == C_NULL && return
    payload.unref(pointer)
    Threads.atomic_sub!(_held, payload.size)
    return
end

# From now on nobody can look at the bytes.
function release(payload::Payload)
    payload.live = RELEASED
    Threads.atomic_fence()
    payload.shared || payload.task !== current_task() || give_back(payload)
    return
end

# Begins to look at the bytes of a sample.
@inline function _look(payload::Payload, number::Int)
    payload.task === current_task() || _share(payload)
    return _live(payload, number)
end

@noinline function _share(payload::Payload)
    payload.shared = true
    Threads.atomic_fence()
    return
end

"""
    Bytes <: DenseVector{UInt8}

The bytes of a field where the library has them, without a copy; read only. They keep their memory
alive, and may be looked at, by any task, as long as their [`Sample`](@ref) may: until the stream continues
to the next one, unless it was kept. `copy(bytes)` is a `Vector{UInt8}`, `String(bytes)` a text.

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
    "these bytes are not there any more: the sample was released when its stream continued or was " *
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

function Base.iterate(bytes::Bytes)
    _look(bytes.payload, bytes.number)
    return bytes.size == 0 ? nothing : (unsafe_load(bytes.data), 1)
end
@inline function Base.iterate(bytes::Bytes, i::Int)
    i < bytes.size || return nothing
    _live(bytes.payload, bytes.number)
    return unsafe_load(bytes.data, i + 1), i + 1
end

function Base.unsafe_convert(::Type{Ptr{UInt8}}, bytes::Bytes)
    _look(bytes.payload, bytes.number)
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
