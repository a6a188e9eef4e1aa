# Members in sequence: all of one tar or ZIP file, from front to back.

"""
    ShardFeed.Members(url; options...)
    ShardFeed.Members(f, url; options...)

The members of one tar or ZIP file from front to back, as they are: duplicates, directories, links
and devices too. Iterating over it gives each [`CurrentMember`](@ref) once, which is valid until the
next one; what was not read of it is skipped. A member may be of any size, and of a pipe
(`"pipe:COMMAND"`); only a ZIP file from a pipe is taken into memory, as far as the option `memory`
allows. Keywords are those of an [`Archive`](@ref), `opener` too. One task uses it at a time.

```jldoctest
julia> ShardFeed.Members("images.zip") do members
           [(member.name, String(read(member))) for member in members]
       end
2-element Array{Tuple{String,String},1}:
 ("a.txt", "first")
 ("b.txt", "second")
```
"""
mutable struct Members
    handle::Handle
    opening::Opening # whom the library asks, as long as it is open
    busy::Threads.Atomic{Int}
    number::Int      # of the current member, 0: none
    found::Any       # that member, until iterate() returns it: a CurrentMember or nothing
    url::String
    timeout::Float64 # seconds, 0: none
    error::ErrorBuffer
end

"""
    ShardFeed.CurrentMember

The current member of [`Members`](@ref): `name`, `kind` (`:file`, `:directory`, ...), `size`,
`stored`, `method`, `crc32`, `offset`, `mode`, `uid` and `gid` (`UInt64`), `mtime` (seconds since
1970), `link`, `user`, `group`; `nothing` for what the archive does not say. `read(member)` and
`read(member, n)` give its next bytes, `readbytes!(member, buffer, n)` reads them into a buffer,
`eof(member)` says whether it is at its end: then all its checks have held.

```jldoctest
julia> ShardFeed.Members("train-000.tar") do members
           member = first(members)
           (member.name, member.kind, string(member.mode; base=8), read(member, 5))
       end
("a/0001.cls", :file, "644", UInt8[0x31])
```
"""
struct CurrentMember
    members::Members
    number::Int
    name::String
    facts::NamedTuple
    ahead::Vector{UInt8} # bytes that were read and not returned, the next ones of the member
end

function Members(url::AbstractString; timeout=0, opener=nothing, options...)
    limit = _seconds(timeout)
    text = _checked(String(url), "URL")
    given = [pairs(options)..., :timeout => _wait_option(limit)]
    out = PointerOut(C_NULL)
    error = new_error()
    opening = Opening(0.0, false)
    handle = Ref{Handle}()
    server = start_server(opener)
    with_options("archive", given, server) do native
        server === nothing ?
            shf_options_set_interrupt(native, _opening_receiver(), pointer_from_objref(opening)) :
            shf_options_set_interrupt(native, address_of_shf_requests_cancelled[], server.queue)
        code = storing(server, shf_members_open, out, text, native, error) do result
            if result == OK
                handle[] = Handle(out[], shf_members_close, "sequence of members"; owner=opening,
                                  server=server)
            end
        end
        code == E_CANCELLED && opening.interrupted && throw(InterruptException())
        _check(code, error, () -> [text])
    end
    return Members(handle[], opening, Threads.Atomic{Int}(0), 0, nothing, text, limit, new_error())
end

function Members(f::Function, url::AbstractString; options...)
    members = Members(url; options...)
    try
        return f(members)
    finally
        close(members)
    end
end

Base.isopen(members::Members) = isopen(members.handle)

"""
    close(members::ShardFeed.Members)

Closes the file, and ends the command of a pipe. A call of another task on it ends with a
`ShardFeedError` of class `:CANCELLED`.
"""
function Base.close(members::Members)
    if enter(members.handle)
        shf_members_cancel(members.handle.pointer)
        leave(members.handle)
    end
    let_go(members.handle)
    return
end

Base.IteratorSize(::Type{Members}) = Base.SizeUnknown()
Base.eltype(::Type{Members}) = CurrentMember
Base.show(io::IO, members::Members) =
    print(io, "Members of ", members.url, isopen(members) ? "" : " (closed)")

# Calls f while no other task uses the members.
function _exclusively(f, members::Members)
    Threads.atomic_cas!(members.busy, 0, 1) == 0 ||
        throw(_usage("the members are in use by another task; help: open them once for each task"))
    try
        isopen(members.handle) || throw(_usage(members.handle.refusal))
        return f()
    finally
        members.busy[] = 0
    end
end

# Makes a call in steps, so that other tasks and Ctrl-C come between them. OK or END. Ctrl-C must not
# come between the call and its end: `store` stores what `f` with the pointer and `arguments` gave.
function _in_steps(store, members::Members, f, arguments...)
    opening = members.opening
    started = time()
    while true
        opening.interrupted = false
        code = using_handle(members.handle) do pointer
            storing(code -> code == OK && store(pointer), members.handle.server, f, pointer,
                    arguments..., members.error)
        end
        code in (OK, END) && return code
        # Nothing is lost. Here only when the caller has put off Ctrl-C.
        code == E_CANCELLED && opening.interrupted && throw(InterruptException())
        code == E_TIMEOUT || throw(_error(members.error, () -> [members.url]))
        if members.timeout != 0 && time() - started >= members.timeout
            throw(ShardFeedError(E_TIMEOUT, "no byte within the time of the option timeout; " *
                                            "help: call again, or raise timeout"))
        end
        yield()
    end
end

const _HEADER_TEXT = (link=32, user=33, group=34)

function Base.iterate(members::Members, ::Nothing=nothing)
    return _exclusively(members) do
        # After Ctrl-C the next member may be here already.
        members.found === nothing && _find_next(members)
        member = members.found
        members.found = nothing
        member === nothing ? nothing : (member, nothing)
    end
end

function _find_next(members::Members)
    members.number += 1
    name = Ref(NativeBytes())
    _in_steps(members, shf_members_next, name) do pointer
        members.found =
            CurrentMember(members, members.number, _text(name[]), _facts(pointer), UInt8[])
    end
    return
end

# What the headers say; `nothing` for what they do not.
function _facts(pointer::Pointer)
    known(what) = (number = shf_members_info(pointer, Int32(what));
                   number == typemax(UInt64) ? nothing : number)
    text(what) = (bytes = Ref(NativeBytes());
                  shf_members_text(pointer, Int32(what), bytes) == OK ? _text(bytes[]) : nothing)
    time = known(_MEMBER.mtime)
    return (
        kind=_MEMBER_KINDS[something(known(_MEMBER.kind))+1],
        size=Int(something(known(_MEMBER.size))),
        stored=Int(something(known(_MEMBER.stored))),
        method=Int(something(known(_MEMBER.method))),
        crc32=(crc = known(_MEMBER.crc32); crc === nothing ? nothing : UInt32(crc)),
        offset=Int(something(known(_MEMBER.offset))),
        mode=(mode = known(_MEMBER.mode); mode === nothing ? nothing : Int(mode)),
        uid=known(_MEMBER.uid), # up to 2^64 - 2 in a tar
        gid=known(_MEMBER.gid),
        mtime_ns=time === nothing ? nothing : reinterpret(Int64, time),
        link=text(_HEADER_TEXT.link),
        user=text(_HEADER_TEXT.user),
        group=text(_HEADER_TEXT.group),
    )
end

function Base.getproperty(member::CurrentMember, what::Symbol)
    what in fieldnames(CurrentMember) && return getfield(member, what)
    facts = getfield(member, :facts)
    what === :mtime && return _in_seconds(facts.mtime_ns)
    return getproperty(facts, what)
end
_in_seconds(::Nothing) = nothing
_in_seconds(ns::Int64) = fld(ns, 1_000_000_000) + mod(ns, 1_000_000_000) / 1e9
Base.propertynames(member::CurrentMember) = (:name, keys(member.facts)..., :mtime)
Base.show(io::IO, member::CurrentMember) =
    print(io, "member ", repr(member.name), ": ", member.size, " bytes")

# Calls f while no other task uses the members of which this is the current one.
_using_current(f, member::CurrentMember) = _exclusively(member.members) do
    member.number == member.members.number || throw(_usage("the member $(repr(member.name)) is no " *
        "longer the current one; help: read a member before the next one is asked for"))
    f()
end

# Reads to `buffer` behind its first done[] bytes, at most until there are `most`, and counts them;
# false at the end.
function _read_some(member::CurrentMember, buffer::Vector{UInt8}, done::Ref{Int}, most::Int)
    before = done[]
    room = most - before
    ahead = member.ahead
    if !isempty(ahead)
        without_interrupts() do
            given = min(room, length(ahead))
            copyto!(buffer, before + 1, ahead, 1, given)
            deleteat!(ahead, 1:given)
            done[] += given
        end
        return true
    end
    size = Ref{Csize_t}(0)
    GC.@preserve buffer _in_steps(
        _ -> done[] += Int(size[]), member.members, shf_members_read, pointer(buffer, before + 1),
        room, size,
    )
    return done[] > before
end

"""
    readbytes!(member::ShardFeed.CurrentMember, buffer::Vector{UInt8}, n=length(buffer)) -> Int

Reads up to `n` bytes, fewer only at the end of the member, and returns how many. The buffer grows
as needed. An exception loses no byte: the next call begins with the same ones.
"""
function Base.readbytes!(member::CurrentMember, buffer::Vector{UInt8}, n=length(buffer))
    return _using_current(member) do
        done = Ref(0)
        try
            while done[] < n
                # A size is a claim: memory grows with the bytes that come.
                done[] < length(buffer) || resize!(buffer, Int(min(n, max(2 * done[], 65536))))
                _read_some(member, buffer, done, Int(min(n, length(buffer)))) || break
            end
        catch
            without_interrupts(() -> prepend!(member.ahead, buffer[1:done[]]))
            rethrow()
        end
        done[]
    end
end

function Base.read(member::CurrentMember, n::Integer=typemax(Int))
    buffer = Vector{UInt8}(undef, Int(min(n, member.size, 65536)))
    return resize!(buffer, readbytes!(member, buffer, n))
end

function Base.eof(member::CurrentMember)
    return _using_current(member) do
        isempty(member.ahead) || return false
        byte = Vector{UInt8}(undef, 1)
        done = Ref(0)
        try
            return !_read_some(member, byte, done, 1)
        finally
            without_interrupts(() -> append!(member.ahead, byte[1:done[]]))
        end
    end
end
