# Samples: a key and named byte fields.

"""
    Sample <: AbstractDict{String,Bytes}

One sample of a stream, a dictionary from field names to [`Bytes`](@ref ShardFeed.Bytes): `sample["jpg"]`
(`KeyError` when absent), `haskey`, `get(sample, "jpg", default)`, `keys`, `values`, `pairs`. Also:

- `sample.key`: what its members are called up to the first dot
- `sample.shard`: URL of its shard, without secrets
- `sample.epoch`, `sample.lane`, `sample.shard_number`, `sample.offset`, `sample.part`: where it came
  from. `shard_number` and `lane` count from 0, `offset` is that of its first header

A sample may be used until its stream continues to the next one; then it is a `ShardFeedError`.
[`keep`](@ref) and `copy` make one that stays.

```jldoctest
julia> ShardFeed.open("train-000.tar") do stream
           for sample in stream
               println(sample.key, ": ", String(sample["txt"]), " ", get(sample, "jpg", nothing))
           end
       end
a/0001: one nothing
a/0002: two nothing
a/0003: three nothing
```
"""
struct Sample <: AbstractDict{String,Bytes}
    handle::Pointer # borrowed from the payload
    payload::Payload
    number::Int
end

"""
    SampleCopy <: AbstractDict{String,Vector{UInt8}}

A sample in Julia's own memory, with the same names and properties as a [`Sample`](@ref): what
`copy(sample)` gives, and a [`Dataset`](@ref).

```jldoctest
julia> sample = Dataset("train-{000..001}.tar")[2]
SampleCopy "a/0002" of train-000.tar: cls (1 byte), txt (3 bytes)

julia> String(copy(sample["txt"]))
"two"
```
"""
struct SampleCopy <: AbstractDict{String,Vector{UInt8}}
    key::String
    shard::String
    epoch::UInt64
    lane::UInt64
    shard_number::UInt64
    offset::UInt64
    part::UInt64
    names::Vector{String}
    contents::Vector{Vector{UInt8}}
end

const AnySample = Union{Sample,SampleCopy}
const _POSITIONS = (epoch=0, lane=1, shard_number=2, offset=3, part=4)

@inline function _alive(sample::Sample)
    payload = getfield(sample, :payload)
    _look(payload, getfield(sample, :number))
    return getfield(sample, :handle)
end

# ---- Reading -------------------------------------------------------------------------------------

function Base.getproperty(sample::Sample, name::Symbol)
    handle = _alive(sample)
    bytes = Ref(NativeBytes())
    if name === :key
        shf_sample_key(handle, bytes)
        return _text(bytes[])
    elseif name === :shard
        shf_sample_url(handle, bytes)
        return _text(bytes[])
    elseif haskey(_POSITIONS, name)
        return shf_sample_info(handle, Int32(_POSITIONS[name]))
    end
    throw(ArgumentError("a Sample has no property $name"))
end

Base.propertynames(::Sample, private::Bool=false) = (:key, :shard, keys(_POSITIONS)...)

# The bytes of field number i (from 1), which must be there.
@inline function _content(sample::Sample, i::Int)
    bytes = Ref(NativeBytes())
    shf_sample_field(getfield(sample, :handle), i - 1, C_NULL, bytes)
    return Bytes(bytes[], getfield(sample, :payload), getfield(sample, :number))
end

function _name(sample::Sample, i::Int)
    bytes = Ref(NativeBytes())
    shf_sample_field(getfield(sample, :handle), i - 1, bytes, C_NULL)
    return _text(bytes[])
end

@inline function _find(sample::Sample, name::String)
    bytes = Ref(NativeBytes())
    handle = _alive(sample)
    code = GC.@preserve name shf_sample_find(handle, pointer(name), sizeof(name), bytes)
    return code == OK, bytes[]
end

@inline function Base.getindex(sample::Sample, name::AbstractString)
    found, bytes = _find(sample, String(name))
    found || _throw_absent(name, keys(sample))
    return Bytes(bytes, getfield(sample, :payload), getfield(sample, :number))
end

@inline function Base.get(sample::Sample, name::AbstractString, default)
    found, bytes = _find(sample, String(name))
    return found ? Bytes(bytes, getfield(sample, :payload), getfield(sample, :number)) : default
end

Base.get(default::Base.Callable, sample::Sample, name::AbstractString) =
    haskey(sample, name) ? sample[name] : default()
Base.haskey(sample::Sample, name::AbstractString) = _find(sample, String(name))[1]
@inline Base.length(sample::Sample) = Int(shf_sample_field_count(_alive(sample)))

function Base.iterate(sample::Sample, i::Int=1)
    i > length(sample) && return nothing
    return _name(sample, i) => _content(sample, i), i + 1
end

# Without the names.
@inline function Base.iterate(contents::Base.ValueIterator{Sample}, i::Int=1)
    i > length(contents.dict) && return nothing
    return _content(contents.dict, i), i + 1
end

Base.getindex(sample::SampleCopy, name::AbstractString) = sample.contents[_index(sample, name)]
function _index(sample::SampleCopy, name)
    i = findfirst(isequal(name), sample.names)
    i === nothing && _throw_absent(name, sample.names)
    return i
end
function Base.get(sample::SampleCopy, name::AbstractString, default)
    i = findfirst(isequal(name), sample.names)
    return i === nothing ? default : sample.contents[i]
end
Base.haskey(sample::SampleCopy, name::AbstractString) = name in sample.names
Base.length(sample::SampleCopy) = length(sample.names)
function Base.iterate(sample::SampleCopy, i::Int=1)
    i > length(sample.names) && return nothing
    return sample.names[i] => sample.contents[i], i + 1
end

# ---- Keeping -------------------------------------------------------------------------------------

"""
    copy(sample::Sample) -> SampleCopy

The sample in Julia's own memory.
"""
Base.copy(sample::Sample) = SampleCopy(
    sample.key,
    sample.shard,
    (getproperty(sample, name) for name in keys(_POSITIONS))...,
    [_name(sample, i) for i in 1:length(sample)],
    [copy(_content(sample, i)) for i in 1:length(sample)],
)
Base.copy(sample::SampleCopy) = sample

"""
    keep(sample::Sample) -> Sample

The sample without a copy of its bytes, for as long as it is used; use the one that is returned.
`close(kept)` gives the memory back at once, else that waits for the garbage collector. (Small
samples share memory: a kept one may hold 64 KiB more than 8 times its size.)

```jldoctest
julia> kept = ShardFeed.open("train-000.tar") do stream
           [keep(sample) for sample in stream]
       end;

julia> String(kept[1]["txt"])
"one"
```
"""
function keep(sample::Sample)
    size = mapreduce(length, +, values(sample); init=0)
    handle = shf_sample_ref(_alive(sample))
    return Sample(handle, Payload(handle, 1, shf_sample_unref; size=size), 1)
end

"""
    close(sample::Sample)

Ends the use of a sample, and gives the memory of one that was kept back.
"""
function Base.close(sample::Sample)
    payload = getfield(sample, :payload)
    payload.unref === shf_sample_unref && release(payload)
    return
end

# ---- Showing -------------------------------------------------------------------------------------

_plural(n) = n == 1 ? "1 byte" : "$n bytes"

function Base.show(io::IO, sample::AnySample)
    print(io, nameof(typeof(sample)))
    if sample isa Sample && getfield(sample, :payload).live != getfield(sample, :number)
        return print(io, " (released)")
    end
    print(io, ' ', repr(sample.key), " of ", sample.shard, ": ")
    join(io, ("$name ($(_plural(length(content))))" for (name, content) in sample), ", ")
end
Base.show(io::IO, ::MIME"text/plain", sample::AnySample) = show(io, sample)
