# Writing shards: samples in, whole shards out.

"""
    ShardFeed.Shard

A shard that a [`Writer`](@ref ShardFeed.Writer) has published: `url` (its name, by the pattern),
`samples`, `bytes` (of its file), `payload` (bytes of all of its fields, before compression),
`digest` (XXH3-128 of its file in 32 hexadecimal digits, as `xxh128sum` prints it), `index` (the path
of its index, `nothing` without one), `token` (with `prepare=true`, for
[`ShardFeed.publish_prepared`](@ref): the shard has not appeared; else `nothing`).
"""
struct Shard
    url::String
    samples::Int
    bytes::Int
    payload::Int
    digest::String
    index::Union{Nothing,String}
    token::Union{Nothing,String}
end

# The next name, of a function of the user. Inside a call of the library nothing may throw or yield:
# the call ends when it needs a name, the function is called, and the call is made again.
mutable struct NextName
    name::Function
    number::UInt64
    bytes::Vector{UInt8}
    ready::Bool
    wanted::Bool
end

function _take_name(context::Ptr{Cvoid}, number::UInt64, out::Ptr{NativeBytes})
    next = unsafe_pointer_to_objref(context)::NextName
    next.number = number
    next.wanted = !next.ready
    next.wanted && return Int32(1)
    next.ready = false
    unsafe_store!(out, NativeBytes(pointer(next.bytes), length(next.bytes)))
    return Int32(0)
end
_name_giver() = @cfunction(_take_name, Int32, (Ptr{Cvoid}, UInt64, Ptr{NativeBytes}))

function _prepare_name(next::NextName)
    next.wanted = false
    text = next.name(Int(next.number))
    text isa AbstractString ||
        throw(_usage("shard $(next.number) is named by a $(typeof(text)): a String expected"))
    next.bytes = Vector{UInt8}(codeunits(String(text)))
    next.ready = true
    return
end
_prepare_name(::Nothing) = nothing

"""
    ShardFeed.Writer(f, pattern; index=false, on_shard=nothing, options...) -> Vector{Shard}
    ShardFeed.Writer(pattern; index=false, on_shard=nothing, options...)

Makes tar or ZIP shards of samples. With a function, as in a do-block, the end of the block publishes
the last shard, and the shards are returned; an exception discards what is not published. Otherwise
call [`ShardFeed.finish`](@ref): what `close`, or the garbage collector, ends is discarded.

`pattern` is a path, a `file://`, `s3://`, `gs://` or `az://` URL, `pipe:COMMAND`, or `-` for standard
output, with at most one number of the shard, `%d` or `%06d`. The end of the name says the format: `.tar`, `.tar.gz`, `.tar.zst`, `.tar.xz`,
`.tar.lz4`, `.tar.bz2`, `.zip`. It may also be a function that makes such a name of the number. That is
called once for each shard; a name that comes again is an error. `on_shard` is a function that is called with each [`Shard`](@ref
ShardFeed.Shard) that was published, inside of later calls of the writer. Keywords are options of the library, see
[`ShardFeed.options`](@ref): `max_samples=1000`, `max_bytes="1GB"`, `overwrite=true`, ...;
`index=true` is the same as `write_index=true`.

`write(writer, key, fields...)` writes a sample of bytes and texts, `push!(writer, sample)` one of a
stream, [`ShardFeed.write_files`](@ref) one of files.

```jldoctest
julia> shards = ShardFeed.Writer("new-%03d.tar"; max_samples=2, index=true) do writer
           for i in 1:3
               write(writer, "sample-\$i", "jpg" => rand(UInt8, 100), "cls" => i)
           end
       end;

julia> [(shard.url, shard.samples, shard.index) for shard in shards]
2-element Array{Tuple{String,Int64,String},1}:
 ("new-000.tar", 2, "new-000.tar.sfidx")
 ("new-001.tar", 1, "new-001.tar.sfidx")

julia> ShardFeed.open(stream -> [sample.key for sample in stream], "new-{000..001}.tar")
3-element Array{String,1}:
 "sample-1"
 "sample-2"
 "sample-3"
```

A shard appears under its name when it is whole, with its index, and nothing is overwritten without
`overwrite=true`. The same samples make the same bytes, by any number of threads. An error about a
sample, of class `:USAGE` or of a file that was to become a field, costs that sample alone: the next
one can be written. After any other error all calls throw it again. One task writes at a time.
"""
mutable struct Writer
    handle::Handle
    opening::Opening # whom the library asks, as long as it is open
    busy::Threads.Atomic{Int}
    pattern::String
    error::ErrorBuffer
    published::Vector{Shard} # that are known of
    names::Union{Nothing,NextName}
    on_shard::Any
    reported::Int # shards that on_shard had
end

Writer(pattern::AbstractString; options...) =
    _open_writer(_checked(String(pattern), "pattern"), nothing; options...)
Writer(name::Function; first_shard=0, options...) =
    _open_writer("", NextName(name, parse(UInt64, string(first_shard)), UInt8[], false, true);
                 first_shard=first_shard, options...)

function _open_writer(text::String, names; index::Bool=false, on_shard=nothing, options...)
    _prepare_name(names)
    given = index ? [pairs(options)..., :write_index => true] : options
    out = PointerOut(C_NULL)
    error = new_error()
    opening = Opening(0.0, false)
    handle = Ref{Handle}()
    with_options("writer", given) do native
        shf_options_set_interrupt(native, _opening_receiver(), pointer_from_objref(opening))
        named = names !== nothing
        named && shf_options_set_shard_name(native, _name_giver(), pointer_from_objref(names))
        code = GC.@preserve text names without_interrupts() do
            result = shf_writer_open(out, named ? Ptr{UInt8}(C_NULL) : pointer(text), native, error)
            if result == OK
                handle[] = Handle(out[], shf_writer_close, "writer"; owner=opening)
            end
            result
        end
        _check(code, error)
    end
    return Writer(handle[], opening, Threads.Atomic{Int}(0), text, new_error(), Shard[], names,
                  on_shard, 0)
end

function Writer(f::Function, pattern::Union{AbstractString,Function}; options...)
    writer = Writer(pattern; options...)
    try
        f(writer)
        isopen(writer) && finish(writer)
        return shards(writer)
    finally
        close(writer)
        _report(writer) # those that were published before something failed
    end
end

Base.isopen(writer::Writer) = isopen(writer.handle)
Base.show(io::IO, writer::Writer) =
    print(io, "ShardFeed.Writer of ",
          writer.names === nothing ? writer.pattern : "shards that a function names", isopen(writer) ? "" : " (closed)")

"""
    close(writer::ShardFeed.Writer)

Discards what is not published. A call of another task on it ends with a `ShardFeedError` of class
`:CANCELLED`.
"""
function Base.close(writer::Writer)
    if enter(writer.handle)
        if Threads.atomic_cas!(writer.busy, 0, 1) == 0
            _note_shards(writer, writer.handle.pointer)
            writer.busy[] = 0
        else
            cancel(writer)
        end
        leave(writer.handle)
    end
    let_go(writer.handle)
    return
end

"""
    ShardFeed.cancel(writer)

Makes what the writer waits for, and later calls, end with a `ShardFeedError` of class `:CANCELLED`.
Any task may do it.
"""
function cancel(writer::Writer)
    if enter(writer.handle)
        shf_writer_cancel(writer.handle.pointer)
        leave(writer.handle)
    end
    return
end

# Calls f with the handle while no other task uses the writer.
function _exclusively(f, writer::Writer)
    Threads.atomic_cas!(writer.busy, 0, 1) == 0 ||
        throw(_usage("the writer is in use by another task; help: write in one task"))
    try
        return using_handle(f, writer.handle)
    finally
        writer.busy[] = 0
    end
end

# Makes calls of the library: f gets the handle and gives the code of the first one that failed. f
# throws nothing and does not yield, see without_interrupts().
function _call(f, writer::Writer)
    _exclusively(writer) do handle
        writer.opening.interrupted = false
        code = without_interrupts(() -> f(handle))
        if writer.names !== nothing && writer.names.wanted
            _prepare_name(writer.names)
            code = without_interrupts(() -> f(handle))
        end
        # Here only when the caller has put off Ctrl-C as well.
        code == E_CANCELLED && writer.opening.interrupted && throw(InterruptException())
        _check(code, writer.error)
    end
    _report(writer)
    return
end

# Passes on what was published meanwhile: once, also when the function throws.
function _report(writer::Writer)
    writer.on_shard === nothing && return
    isopen(writer) && _exclusively(handle -> _note_shards(writer, handle), writer)
    while writer.reported < length(writer.published)
        writer.reported += 1
        writer.on_shard(writer.published[writer.reported])
    end
    return
end

# ---- Samples -------------------------------------------------------------------------------------

# What fields may be given as, besides one pair after another.
const _Fields = Union{AbstractDict,NamedTuple,AbstractVector,Tuple}

_field_name(name::Union{AbstractString,Symbol}) = String(name)
_field_name(name) = throw(_usage("a field name of type $(typeof(name)): a String expected"))

_field_bytes(value::DenseVector{UInt8}) = value
_field_bytes(value::AbstractVector{UInt8}) = Vector{UInt8}(value)
_field_bytes(value::AbstractString) = codeunits(String(value))
_field_bytes(value::Bool) = _no_bytes(value)
_field_bytes(value::Integer) = codeunits(string(value))
_field_bytes(value) = _no_bytes(value)
_no_bytes(value) = throw(_usage("a field of type $(typeof(value)); help: give a vector of UInt8, " *
                                "a text, or an integer, which becomes a text"))

"""
    write(writer::ShardFeed.Writer, key, fields::Pair...) -> Int
    write(writer::ShardFeed.Writer, key, fields) -> Int

Writes a sample, and returns the number of bytes of its fields. A field is a name and its bytes: a
vector of `UInt8`, a text, or an integer, which becomes a text. They keep their order; `fields` may also
be a vector or tuple of pairs, a named tuple, or a dictionary.

```jldoctest
julia> ShardFeed.Writer("mixed.zip") do writer
           write(writer, "a/0001", "jpg" => UInt8[1, 2, 3], "cls" => 7)
           write(writer, "a/0002", (txt="words", cls="7"))
       end[1].payload
10

julia> Archive(archive -> collect(keys(archive)), "mixed.zip")
4-element Array{String,1}:
 "a/0001.jpg"
 "a/0001.cls"
 "a/0002.txt"
 "a/0002.cls"
```
"""
Base.write(writer::Writer, key::AbstractString, fields::Pair...) = _write(writer, key, fields)
Base.write(writer::Writer, key::AbstractString, fields::_Fields) = _write(writer, key, _field_pairs(fields))

_field_pairs(fields::NamedTuple) = pairs(fields)
_field_pairs(fields) = fields

function _write(writer::Writer, given_key, fields)
    key = String(given_key)
    names = String[]
    contents = DenseVector{UInt8}[]
    for (name, value) in fields
        push!(names, _field_name(name))
        push!(contents, _field_bytes(value))
    end
    GC.@preserve key names contents begin
        data = Ptr{UInt8}[pointer(content) for content in contents]
        _call(writer) do handle
            code = shf_writer_begin(handle, pointer(key), sizeof(key), writer.error)
            for (name, from, content) in zip(names, data, contents)
                code == OK || return code
                code = shf_writer_field_borrowed(
                    handle, pointer(name), sizeof(name), from, length(content), writer.error,
                )
            end
            code == OK ? shf_writer_end(handle, writer.error) : code
        end
    end
    return sum(length, contents)
end

"""
    ShardFeed.write_files(writer, key, files::Pair...)
    ShardFeed.write_files(writer, key, files)

Writes a sample whose fields are the bytes of files: names and paths, or URLs, which have "://".

```jldoctest
julia> write("cat.jpg", "an image"); write("cat.txt", "a cat");

julia> shards = ShardFeed.Writer("cats.tar") do writer
           ShardFeed.write_files(writer, "0001", "jpg" => "cat.jpg", "txt" => "cat.txt")
       end;

julia> ShardFeed.open(stream -> String(first(stream)["jpg"]), "cats.tar")
"an image"
```
"""
write_files(writer::Writer, key::AbstractString, files::Pair...) = _write_files(writer, key, files)
write_files(writer::Writer, key::AbstractString, files::_Fields) =
    _write_files(writer, key, _field_pairs(files))

function _write_files(writer::Writer, given_key, files)
    key = String(given_key)
    named = [(_field_name(name), _checked(String(path), "path")) for (name, path) in files]
    GC.@preserve key named begin
        _call(writer) do handle
            code = shf_writer_begin(handle, pointer(key), sizeof(key), writer.error)
            for (name, path) in named
                code == OK || return code
                add = occursin("://", path) ? shf_writer_field_url : shf_writer_field_file
                code = add(handle, pointer(name), sizeof(name), pointer(path), writer.error)
            end
            code == OK ? shf_writer_end(handle, writer.error) : code
        end
    end
    return
end

"""
    push!(writer::ShardFeed.Writer, sample) -> writer
    append!(writer::ShardFeed.Writer, samples) -> writer

Writes a sample of a stream, an archive or a data set as it is, with its key and all of its fields, or
each of many. `key => fields` is a sample too, as `write` takes them.

```jldoctest
julia> shards = ShardFeed.Writer("shuffled.tar.zst") do writer
           ShardFeed.open("train-{000..001}.tar"; shuffle=100, seed=1) do stream
               append!(writer, stream)
           end
           push!(writer, "c/0007" => ["cls" => 7, "txt" => "seven"])
       end;

julia> shards[1].samples
7
```
"""
function Base.push!(writer::Writer, sample::Sample)
    native = _alive(sample)
    GC.@preserve sample begin
        _call(handle -> shf_writer_write(handle, native, writer.error), writer)
    end
    return writer
end
Base.push!(writer::Writer, sample::SampleCopy) = (write(writer, sample.key, sample); writer)
function Base.push!(writer::Writer, sample::Pair)
    key, fields = sample
    fields isa Pair ? write(writer, key, fields) : _write(writer, key, _field_pairs(fields))
    return writer
end

function Base.append!(writer::Writer, samples)
    for sample in samples
        push!(writer, sample)
    end
    return writer
end

# ---- Shards --------------------------------------------------------------------------------------

"""
    ShardFeed.next_shard(writer)

Ends the shard that is being written, if there is one: the next sample begins another one. It is
published meanwhile; [`ShardFeed.shards`](@ref) says when.
"""
next_shard(writer::Writer) =
    (_call(handle -> shf_writer_next_shard(handle, writer.error), writer); nothing)

"""
    flush(writer::ShardFeed.Writer; durable=false)

Hands what was written so far to the system, and with `durable` to the disk: after a crash the samples
are in the `.partial` file, whole, and all shards that were ended are published.
"""
Base.flush(writer::Writer; durable::Bool=false) =
    (_call(handle -> shf_writer_flush(handle, Int32(durable), writer.error), writer); nothing)

"""
    ShardFeed.finish(writer) -> Vector{Shard}

Ends the last shard, and returns the shards when all are published. The writer is then closed.

```jldoctest
julia> writer = ShardFeed.Writer("one.tar");

julia> write(writer, "0001", "txt" => "one");

julia> isfile("one.tar"), ShardFeed.finish(writer)[1].samples, isfile("one.tar")
(false, 1, true)
```
"""
function finish(writer::Writer)
    _call(handle -> shf_writer_finish(handle, writer.error), writer)
    close(writer)
    return shards(writer)
end

"""
    ShardFeed.shards(writer) -> Vector{Shard}

The shards that are published so far, in their order.
"""
function shards(writer::Writer)
    isopen(writer) && _exclusively(handle -> _note_shards(writer, handle), writer)
    return copy(writer.published)
end

const _SHARD = (samples=0, bytes=1, payload=2)
const _SHARD_TEXT = (url=0, digest=1, index=2, token=3)

function _note_shards(writer::Writer, handle::Pointer)
    bytes = Ref(NativeBytes())
    for number in length(writer.published):Int(shf_writer_shards(handle))-1
        fact(what) = Int(shf_writer_shard_info(handle, number, Int32(what)))
        text(what) = shf_writer_shard_text(handle, number, Int32(what), bytes) == OK ?
                     _text(bytes[]) : nothing
        push!(writer.published, Shard(
            text(_SHARD_TEXT.url), fact(_SHARD.samples), fact(_SHARD.bytes), fact(_SHARD.payload),
            text(_SHARD_TEXT.digest), text(_SHARD_TEXT.index), text(_SHARD_TEXT.token),
        ))
    end
    return
end

"""
    ShardFeed.publish_prepared(token; options...)

Makes a shard appear that a writer with `prepare=true` has made, in any process and on any machine.
`token` is what its [`ShardFeed.Shard`](@ref) says; options are those that the writer had. A shard that
has appeared already stays as it is, so that this can be called again. Several tasks can publish shards
at once.

```jldoctest
julia> made = ShardFeed.Writer(w -> write(w, "1", "txt" => "one"), "waits.tar"; prepare=true);

julia> isfile("waits.tar")
false

julia> ShardFeed.publish_prepared(made[1].token); isfile("waits.tar")
true
```
"""
publish_prepared(token::AbstractString; options...) =
    _with_text(shf_publish_prepared, token, "token", options)

"""
    ShardFeed.discard_prepared(token; options...)

Removes a shard that a writer with `prepare=true` has made, when it has not appeared.
"""
discard_prepared(token::AbstractString; options...) =
    _with_text(shf_discard_prepared, token, "token", options)

"""
    ShardFeed.discard_left(pattern; options...)

Removes all that writers have left in a store that has not appeared, also of those that are at work:
under names of `pattern`, a URL in which `%d` and `%06d` stand for numbers. See `shf_discard_left` in
the header.
"""
discard_left(pattern::AbstractString; options...) =
    _with_text(shf_discard_left, pattern, "pattern", options)

function _with_text(call, given::AbstractString, what, options)
    text = _checked(String(given), what)
    error = new_error()
    with_options("writer", options) do native
        code = interruptible(native) do
            GC.@preserve text call(pointer(text), native, error)
        end
        _check(code, error, () -> String[])
    end
    return
end
