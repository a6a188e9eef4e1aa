# What went wrong, as the library says it.

"""
    ShardFeedError <: Exception

What went wrong. `showerror` prints the library's message, which names the shard, member, byte and
cause, and after `help:` what to do. Its parts:

- `class`: one of `:FORMAT`, `:TRUNCATED`, `:INTEGRITY`, `:LIMIT`, `:UNSUPPORTED`, `:AMBIGUOUS`,
  `:CHANGED`, `:IO`, `:NOMEM`, `:CANCELLED`, `:TIMEOUT`, `:CHILD`, `:USAGE`, `:NOT_FOUND`, ...
- `code`: its number in the library
- `message`: all of the text
- `shard`, `member`, `offset` (byte in the decompressed shard): `nothing` where there is none
- `help`: what to do, perhaps empty
- `os_error`: errno where the system gave one, else 0

```jldoctest
julia> try
           Archive("missing.zip")
       catch error
           error.class, error.shard, error.os_error
       end
(:IO, "missing.zip", 2)
```
"""
struct ShardFeedError <: Exception
    class::Symbol
    code::Int32
    message::String
    shard::Union{String,Nothing}
    member::Union{String,Nothing}
    offset::Union{Int64,Nothing}
    help::String
    os_error::Int32
end

Base.showerror(io::IO, error::ShardFeedError) =
    print(io, "ShardFeedError (", error.class, "): ", error.message)

# What this package itself finds. `message` may have "; help: " in it.
ShardFeedError(code::Int32, message::AbstractString) =
    ShardFeedError(_class(code), code, message, nothing, nothing, nothing, _help(message), 0)

_usage(message) = ShardFeedError(E_USAGE, message)

# The library itself may be what is missing; these are the only classes that are needed without it.
_class(code) =
    isempty(_library_path[]) ? :USAGE : Symbol(_text(shf_error_name(code)))

function _help(message)
    at = findlast("; help: ", message)
    return at === nothing ? "" : String(message[nextind(message, last(at)):end])
end

# The exception for what a call has just written. `shards` gives the URLs that it may be about: a
# message begins with one of them, but says so only where a member or an offset follows.
function _error(buffer::ErrorBuffer, shards=() -> String[])
    GC.@preserve buffer begin
        start = pointer(buffer)
        code = unsafe_load(Ptr{Int32}(start))
        os_error = unsafe_load(Ptr{Int32}(start + 4))
        offset = unsafe_load(Ptr{UInt64}(start + 8))
        message = unsafe_string(start + 16)
    end
    # Only a message that was cut can end in a part of a character.
    isvalid(message) || (message = map(c -> isvalid(c) ? c : '\ufffd', message))
    has_offset = offset != typemax(UInt64)
    place = has_offset ? "at byte $offset: " : nothing
    member = match(r": member \"([^\"]*)\": ", message)
    shard = if member !== nothing
        String(message[1:prevind(message, member.offset)])
    elseif place !== nothing && findfirst(": " * place, message) !== nothing
        String(message[1:prevind(message, first(findfirst(": " * place, message)))])
    else
        _named_shard(code, message, shards)
    end
    return ShardFeedError(
        _class(code),
        code,
        message,
        shard,
        member === nothing ? nothing : String(member.captures[1]),
        has_offset ? Int64(offset) : nothing,
        _help(message),
        os_error,
    )
end

function _named_shard(code, message, shards)
    # What took too long is not to be done again.
    code in (E_TIMEOUT, E_CANCELLED) && return nothing
    for url in shards()
        startswith(message, url * ": ") && return url
    end
    return nothing
end

# Throws what a call has written, unless it went well.
_check(code::Int32, buffer::ErrorBuffer, shards=() -> String[]) =
    code == OK || throw(_error(buffer, shards))

# A text that C can take.
function _checked(text::String, what)
    0x00 in codeunits(text) && throw(_usage("$what $(repr(text)) has a NUL character"))
    return text
end

# A name that is not there, as the key of a KeyError: the same text, shown with the names that are.
struct AbsentName <: AbstractString
    name::String
    present::Vector{String}
end

Base.ncodeunits(absent::AbsentName) = ncodeunits(absent.name)
Base.codeunit(::AbsentName) = UInt8
Base.codeunit(absent::AbsentName, i::Integer) = codeunit(absent.name, i)
Base.isvalid(absent::AbsentName, i::Integer) = isvalid(absent.name, i)
Base.iterate(absent::AbsentName, i::Integer=1) = iterate(absent.name, i)
Base.show(io::IO, absent::AbsentName) =
    print(io, repr(absent.name), " (there are: ", join(map(repr, absent.present), ", "), ")")

@noinline _throw_absent(name, present) =
    throw(KeyError(AbsentName(String(name), collect(String, present))))
