# Streams: the samples of many shards, one after another.

"""
    Stream

What [`ShardFeed.open`](@ref) gives. Iterating over it gives each [`Sample`](@ref) once; a second loop
continues where the first one stopped, as with `eachline` of a file.

One task uses a stream at a time; a second one at the same time gets a `ShardFeedError`.
`ShardFeed.cancel(stream)` and `close(stream)` may be called by any task at any time.
"""
mutable struct Stream
    handle::Handle
    busy::Threads.Atomic{Int} # 1 while a task is in a call that changes the stream
    payload::Payload          # the block with the sample that is being looked at
    given::Int                # samples of it that were delivered
    count::Int                # samples in it
    urls::Vector{String}
    options::Any
    timeout::Float64          # seconds, 0: none
    error::ErrorBuffer
    logs::Vector{Log}         # one, or those of the parts of a mix
    servers::Vector{Server}   # that answer for openers and tokenizers, likewise
end

const _NO_BLOCK = 0

# The longest time that one call waits: other tasks of the thread, Ctrl-C, and before Julia 1.12 the
# garbage collector have to wait for that long.
const _WAIT = 0.02
# With an opener or a tokenizer, whose tasks come between two calls.
const _WAIT_FOR_SERVER = 0.0005

"""
    ShardFeed.open(urls; options...) -> Stream
    ShardFeed.open(f, urls; options...)

Opens a stream of samples over the shards that `urls` names: a path or URL, or a vector of them, with
braces (`"train-{000..099}.tar"`). With a function, as in a do-block, the stream is closed at its
end; otherwise call `close(stream)`.

Keywords are options of the library, see [`ShardFeed.options`](@ref): `threads=8`, `shuffle=1000`,
`seed=1`, `epochs=0`, `fields=["jpg", "cls"]`, `on_error="skip_sample"`, ... And two of this package:
`log`, a function `(level::Symbol, message)` that receives what the library has to say; without it
that goes to `@warn` and `@info`, and `nothing` drops it. And `on_skip`, a function that receives a
[`ShardFeed.Skip`](@ref) for each sample and shard that is skipped under `on_error`.

`opener` is a function that opens the URLs, all but those of local files and pipes: it gets one and
gives an `IO`, or a vector of bytes, or `contents => version` with a text that is another one for
other contents. It runs in a task of its own, several at once, and may wait as tasks do. An exception
in it is the error of the shard: `SystemError` and `Base.IOError` are of class `:IO`, as are others
but errors of the program (`MethodError`, `ArgumentError`, ...), which are `:USAGE`. An `IO` that
cannot `seek` is read from front to back. It is closed when it was read.

`tokenizer` is a function of a text (a `String`) that gives a vector of whole numbers, its tokens. With
the option `pack` columns may then be text, whose tokens are packed in rows of `Int32`. It
runs in tasks as an opener does, ahead of the loop. What it throws is the error of the sample, of class
`:FORMAT`, which `on_error` may skip; a `ShardFeedError` keeps its class, an `OutOfMemoryError` is of
class `:NOMEM`. The tokens of a text must be the same each time.

```jldoctest
julia> ShardFeed.open("train-{000..001}.tar"; batch=2, decode="txt", pack=11, tokenizer=codeunits) do stream
           rows = first(batches(stream))["txt"] # 11 tokens of each of 2 rows
           String(UInt8.(rows[:, 2]))
       end
"fourfivesix"
```

```jldoctest
julia> shards = Dict("db://one" => read("train-000.tar"), "db://two" => read("train-001.tar"));

julia> ShardFeed.open(["db://one", "db://two"]; opener=url -> shards[url]) do stream
           [sample.key for sample in stream]
       end
6-element Array{String,1}:
 "a/0001"
 "a/0002"
 "a/0003"
 "b/0004"
 "b/0005"
 "b/0006"
```

```jldoctest
julia> ShardFeed.open("train-{000..001}.tar"; threads=2, epochs=2) do stream
           count(sample -> haskey(sample, "txt"), stream)
       end
12
```
"""
function open(urls::URLs; timeout=0, log=log_to_julia, on_skip=nothing, opener=nothing,
              tokenizer=nothing, options...)
    close_abandoned()
    limit = _seconds(timeout)
    listed = url_list(urls)
    target = Log(log, on_skip)
    out = PointerOut(C_NULL)
    error = new_error()
    server = start_server(opener, target, tokenizer)
    servers = server === nothing ? Server[] : [server]
    given = [pairs(options)..., :timeout => _wait_option(limit, server === nothing ? _WAIT : _WAIT_FOR_SERVER)]
    # The option timeout that the library gets is that of one step of waiting for a sample.
    deadline = limit == 0 ? 0.0 : time() + limit
    handle = Ref{Handle}()
    made() = handle[] = stream_handle(out[], servers)
    with_options("stream", given, server) do native
        set_log(native, target, server)
        code = with_texts(listed) do pointers, count
            interruptible(native; made=made, deadline=deadline, server=server) do
                blocking(server, shf_stream_open, out, pointers, count, native, error; deadline=deadline)
            end
        end
        code == E_CANCELLED && throw(ShardFeedError(E_TIMEOUT, "the stream could not be opened " *
            "within the time of the option timeout; help: open it again, or raise timeout"))
        _check(code, error, () -> _shards(listed, options))
    end
    return Stream(list_stream(handle[]), listed, options, limit, [target], servers)
end

# The longest time that the library waits, for a limit in seconds.
_wait_option(limit, wait=_WAIT) =
    string(max(round(Int, (limit == 0 ? wait : min(limit, wait)) * 1e9), 1), "ns")

Stream(handle::Handle, urls, options, timeout, logs, servers) = Stream(
    handle, Threads.Atomic{Int}(0), Payload(C_NULL, _NO_BLOCK, nothing), 0, 0, urls, options,
    timeout, new_error(), logs, servers,
)

function open(f, urls::URLs; options...)
    stream = open(urls; options...)
    try
        return f(stream)
    finally
        close(stream)
    end
end

Base.isopen(stream::Stream) = isopen(stream.handle)

"""
    close(stream::Stream)

Ends a stream: its threads, child processes, memory and the samples that were not kept. A call of
another task on it ends with a `ShardFeedError` of class `:CANCELLED`. Closing twice does nothing.
"""
function Base.close(stream::Stream)
    cancel(stream)
    let_go(stream.handle)
    if _try_begin(stream)
        _drop_block(stream)
        _end(stream)
    end
    close_abandoned()
    return
end

"""
    ShardFeed.cancel(stream)

Makes the calls of all tasks on the stream, and later ones, end with a `ShardFeedError` of class
`:CANCELLED`.
"""
function cancel(stream::Stream)
    if enter(stream.handle)
        shf_stream_cancel(stream.handle.pointer)
        leave(stream.handle)
    end
    return
end

# ---- One task at a time --------------------------------------------------------------------------

@inline _try_begin(stream::Stream) = Threads.atomic_cas!(stream.busy, 0, 1) == 0
@inline _end(stream::Stream) = stream.busy[] = 0
@inline _begin(stream::Stream) = _try_begin(stream) || _in_use()
@noinline _in_use() = throw(_usage(
    "the stream is in use by another task; help: open one stream for each task (options rank and " *
    "world_size share the shards out), or hand out copy(sample) from one",
))

# ---- Fetching ------------------------------------------------------------------------------------

# Calls `next` with the stream until it delivers something; false at the end.
function _wait_for(next, stream::Stream, unit::String)
    started = time()
    while true
        code = using_handle(next, stream.handle)
        for server in stream.servers
            take_requests(server)
            was_interrupted(server) && throw(InterruptException())
        end
        foreach(pass_on, stream.logs)
        code == OK && return true
        code == END && return false
        if code != E_TIMEOUT
            throw(_error(stream.error, () -> _shards(stream.urls, stream.options)))
        elseif stream.timeout != 0 && time() - started >= stream.timeout
            throw(ShardFeedError(E_TIMEOUT, "no $unit within the time of the option timeout; " *
                                            "help: call again to continue waiting"))
        end
        yield()
    end
end

# Puts the next block in the place of the one that is used up.
function _fetch_block(stream::Stream)
    _drop_block(stream)
    collect_garbage()
    return _wait_for(stream, "sample") do pointer
        out = PointerOut(C_NULL)
        # Ctrl-C must not come between taking a block and having it.
        without_interrupts() do
            code = shf_stream_next_block(pointer, 0, out, stream.error)
            if code == OK
                stream.payload = Payload(out[], _NO_BLOCK, shf_block_unref)
                stream.count = shf_block_sample_count(out[])
            end
            code
        end
    end
end

function _drop_block(stream::Stream)
    release(stream.payload)
    stream.given = stream.count = 0
    return
end

# False at the end. Ends the call when it throws.
@noinline function _fetch(stream::Stream)
    fetched = false
    try
        more = _fetch_block(stream)
        fetched = true
        return more
    finally
        fetched || _end(stream)
    end
end

# ---- Iterating -----------------------------------------------------------------------------------

Base.IteratorSize(::Type{Stream}) = Base.SizeUnknown()
Base.eltype(::Type{Stream}) = Sample

@inline function Base.iterate(stream::Stream, state::Nothing=nothing)
    _begin(stream)
    # A closed stream fetches too, and gets the error that it is closed.
    if (stream.given == stream.count || !isopen(stream.handle)) && !_fetch(stream)
        _end(stream)
        return nothing
    end
    payload = stream.payload
    number = stream.given += 1
    payload.live = number # from now on nothing of the sample before may be looked at
    handle = shf_block_sample(payload.pointer, number - 1)
    _end(stream)
    return Sample(handle, payload, number), nothing
end

"""
    isempty(stream::Stream)

Whether the stream has no more samples. Waits for the next one, and does not take it.
"""
function Base.isempty(stream::Stream)
    _begin(stream)
    more = (stream.given < stream.count && isopen(stream.handle)) || _fetch(stream)
    _end(stream)
    return !more
end

function Base.show(io::IO, stream::Stream)
    print(io, "ShardFeed.Stream over ", join(Iterators.take(stream.urls, 3), ", "))
    length(stream.urls) > 3 && print(io, ", ...")
    isopen(stream) || print(io, " (closed)")
end

"""
    ShardFeed.stats(stream) -> Dict{Symbol,Int}

The counters of an open stream: `:samples`, `:bytes`, `:shards`, `:skipped_samples`, `:memory`, ...

```jldoctest
julia> ShardFeed.open("train-000.tar") do stream
           foreach(identity, stream)
           ShardFeed.stats(stream)[:samples]
       end
3
```
"""
function stats(stream::Stream)
    return using_handle(stream.handle) do pointer
        counters = Dict{Symbol,Int}()
        for number in Int32(0):Int32(255)
            name = _text(shf_stat_describe(number, COUNTER_NAME))
            name === nothing && continue
            counters[Symbol(name)] = shf_stream_stat(pointer, number) % Int
        end
        counters
    end
end
