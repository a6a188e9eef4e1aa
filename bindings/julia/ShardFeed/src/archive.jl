# Archives: the members of one tar or ZIP file, in any order.

"""
    Archive(url; options...)
    Archive(data::Vector{UInt8}; options...)
    Archive(f, url; options...)

The members of one tar or ZIP file. `archive[5]` and `archive["img.png"]` read a member (`Vector{UInt8}`;
`KeyError` when there is none), `archive[1:10]` and [`get_many`](@ref) many at once, with several
threads. `length`, `keys` (the names), `haskey`, `iterate`. Any number of tasks may read at once.

`opener` opens the URL, as in [`ShardFeed.open`](@ref).

Numbers are positions in the archive, from 1. With `length` and `getindex`, an archive is a data set
for MLUtils (`numobs`, `getobs`, `DataLoader(archive; parallel=true)`).

```jldoctest
julia> archive = Archive("images.zip");

julia> length(archive), collect(keys(archive))
(2, ["a.txt", "b.txt"])

julia> String(archive["b.txt"]), String(archive[1])
("second", "first")

julia> close(archive)
```
"""
struct Archive
    handle::Handle
    url::String
    options::Any
end

function Archive(url::AbstractString; opener=nothing, options...)
    text = _checked(String(url), "URL")
    server = start_server(opener)
    return _open_archive(text, options; server=server) do out, native, error
        GC.@preserve text blocking(server, shf_archive_open, out, pointer(text), native, error)
    end
end

Archive(data::Vector{UInt8}; options...) =
    _open_archive("memory", options, data) do out, native, error
        shf_archive_open_memory(out, data, length(data), native, error)
    end

function Archive(f::Function, url; options...)
    archive = Archive(url; options...)
    try
        return f(archive)
    finally
        close(archive)
    end
end

function _open_archive(call, url, options, data=nothing; server=nothing)
    out = PointerOut(C_NULL)
    error = new_error()
    handle = Ref{Handle}()
    made() = handle[] = Handle(out[], shf_archive_close, "archive"; owner=data, server=server)
    with_options("archive", options, server) do native
        code = interruptible(() -> call(out, native, error), native; made=made, server=server)
        _check(code, error, () -> [url])
    end
    return Archive(handle[], url, options)
end

Base.isopen(archive::Archive) = isopen(archive.handle)

"""
    close(archive::Archive)

Closes the archive, when the calls of other tasks on it are over and nobody has a view of it. Bytes
that were read stay.
"""
Base.close(archive::Archive) = (let_go(archive.handle); nothing)

Base.length(archive::Archive) = Int(using_handle(shf_archive_member_count, archive.handle))
Base.firstindex(::Archive) = 1
Base.lastindex(archive::Archive) = length(archive)
Base.eachindex(archive::Archive) = Base.OneTo(length(archive))
Base.eltype(::Type{Archive}) = Vector{UInt8}
Base.iterate(archive::Archive, i::Int=1) = i > length(archive) ? nothing : (archive[i], i + 1)

Base.show(io::IO, archive::Archive) =
    print(io, "Archive of ", archive.url, isopen(archive) ? ": $(length(archive)) members" : " (closed)")

# ---- Names ---------------------------------------------------------------------------------------

struct MemberNames <: AbstractVector{String}
    archive::Archive
end

"""
    keys(archive::Archive) -> AbstractVector{String}

The names of the members, in the order of the archive, each made when it is asked for.
"""
Base.keys(archive::Archive) = MemberNames(archive)
Base.size(names::MemberNames) = (length(names.archive),)
function Base.getindex(names::MemberNames, i::Int)
    checkbounds(names, i)
    return using_handle(names.archive.handle) do pointer
        bytes = Ref(NativeBytes())
        shf_archive_name(pointer, i - 1, bytes)
        _text(bytes[])
    end
end

"""
    indexof(archive, name) -> Int
    indexof(dataset, key) -> Int

The number of the member with that name, or of the sample with that key. A `ShardFeedError` of class
`:NOT_FOUND` when there is none, `:AMBIGUOUS` when there are several.

```jldoctest
julia> Archive(archive -> indexof(archive, "b.txt"), "images.zip")
2
```
"""
indexof(archive::Archive, name::AbstractString) =
    _index_by(shf_archive_find, archive.handle, name, () -> [archive.url])

function _index_by(find, handle::Handle, text, shards)
    name = String(text)
    error = new_error()
    number = NumberOut(0)
    code = using_handle(handle) do pointer_to
        server = find === shf_dataset_find ? handle.server : nothing
        GC.@preserve name answered(server, find, pointer_to, pointer(name), sizeof(name), number, error)
    end
    _check(code, error, shards)
    return Int(number[]) + 1
end

# Base's word for what has no such name.
function _number(all, name::AbstractString)
    try
        return indexof(all, name)
    catch error
        error isa ShardFeedError && error.code == E_NOT_FOUND && throw(KeyError(name))
        rethrow()
    end
end

Base.haskey(archive::Archive, name::AbstractString) = _has(archive, name)
function _has(all, name)
    try
        indexof(all, name)
        return true
    catch error
        error isa ShardFeedError && error.code == E_NOT_FOUND && return false
        rethrow()
    end
end
Base.haskey(archive::Archive, i::Integer) = 1 <= i <= length(archive)

_number(all, i::Integer) = 1 <= i <= length(all) ? Int(i) : throw(BoundsError(all, i))

# ---- Reading -------------------------------------------------------------------------------------

const _MEMBER = (size=0, stored=1, method=2, crc32=3, offset=4, kind=5, mode=6, uid=7, gid=8, mtime=9)
const _MEMBER_KINDS = (:file, :directory, :hard_link, :symbolic_link, :special, :sparse,
                       :multi_volume, :unknown)

"""
    ShardFeed.member(archive, i_or_name) -> NamedTuple

What the archive says of a member: `name`, `size`, `stored` (bytes in the archive), `method` (0
stored, 8 deflate, 12 bzip2, 14 LZMA, 93 zstd, 95 xz), `crc32` (`nothing` in a tar), `offset`,
`kind` (`:file`, `:directory`, ...).

```jldoctest
julia> Archive(archive -> ShardFeed.member(archive, "b.txt").size, "images.zip")
6
```
"""
function member(archive::Archive, which)
    i = _number(archive, which)
    return using_handle(archive.handle) do pointer
        size, stored, method, crc32, offset, kind =
            (shf_archive_info(pointer, i - 1, Int32(what)) for what in 0:5)
        (
            name=keys(archive)[i],
            size=Int(size),
            stored=Int(stored),
            method=Int(method),
            crc32=crc32 == typemax(UInt64) ? nothing : UInt32(crc32),
            offset=Int(offset),
            kind=_MEMBER_KINDS[kind+1],
        )
    end
end

function Base.getindex(archive::Archive, which::Union{Integer,AbstractString})
    i = _number(archive, which)
    error = new_error()
    return using_handle(archive.handle) do pointer_to
        contents = Vector{UInt8}(undef, shf_archive_info(pointer_to, i - 1, Int32(0)))
        code = GC.@preserve contents answered(
            archive.handle.server, shf_archive_read, pointer_to, i - 1, pointer(contents),
            length(contents), error,
        )
        _check(code, error, () -> [archive.url])
        contents
    end
end

Base.getindex(archive::Archive, which::AbstractVector) = get_many(archive, which)

Base.get(archive::Archive, which::Union{Integer,AbstractString}, default) =
    haskey(archive, which) ? archive[which] : default

"""
    get_many(archive, numbers_or_names) -> Vector{Vector{UInt8}}
    get_many(dataset, numbers_or_keys) -> Vector{SampleCopy}

Reads many members or samples in one call, in the order of the file and with several threads (option
`threads`) where that pays. The result is in the order that was asked for.

```jldoctest
julia> Archive(archive -> String.(get_many(archive, [2, 1])), "images.zip")
2-element Array{String,1}:
 "second"
 "first"
```
"""
function get_many(archive::Archive, which::AbstractVector)
    positions = UInt64[_number(archive, one) - 1 for one in which]
    error = new_error()
    return using_handle(archive.handle) do pointer_to
        contents = [Vector{UInt8}(undef, shf_archive_info(pointer_to, at, Int32(0))) for at in positions]
        code = GC.@preserve contents begin
            buffers = Ptr{UInt8}[pointer(content) for content in contents]
            answered(archive.handle.server, shf_archive_read_many, pointer_to, positions,
                     length(positions), buffers, error)
        end
        _check(code, error, () -> [archive.url])
        contents
    end
end

"""
    view(archive::Archive, i_or_name) -> ShardFeed.Bytes

The bytes of a member without a copy, where they are in memory already: of a stored member of an
archive in memory or, with `map=true`, of a local file, or of a compressed tar. The memory of the
archive stays as long as a view of it.
"""
function Base.view(archive::Archive, which::Union{Integer,AbstractString})
    i = _number(archive, which)
    error = new_error()
    bytes = Ref(NativeBytes())
    handle = archive.handle
    using_handle(handle) do pointer
        code = answered(handle.server, shf_archive_view, pointer, i - 1, bytes, error)
        _check(code, error, () -> [archive.url])
    end
    enter(handle) || throw(_usage(handle.refusal))
    return Bytes(bytes[], Payload(handle.pointer, 1, _ -> leave(handle); owner=handle), 1)
end
