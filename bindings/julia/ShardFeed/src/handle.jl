# Handles of the library, safe to close at any time, from any task.

# `uses` is 1 for being open and 1 for each call in progress; whoever makes it 0 frees the handle. So
# close() during a call of another task lets that call end first. No locks: a finalizer may do it.
mutable struct Handle
    pointer::Pointer
    uses::Threads.Atomic{Int}
    open::Threads.Atomic{Int}
    free::Any
    refusal::String # what using it gives when it is not open
    owner::Any      # what has to stay until it is freed
    server::Any     # a Server, which answers what its calls wait for, or nothing
    function Handle(pointer, free, kind; at_finalization=free, owner=nothing, server=nothing)
        refusal = "the $kind is closed; help: use it before close()"
        handle = new(pointer, Threads.Atomic{Int}(1), Threads.Atomic{Int}(1), free, refusal, owner,
                     server)
        # The net only: close() is how handles are released.
        return finalizer(handle) do h
            h.free = at_finalization
            let_go(h)
        end
    end
end

Base.isopen(handle::Handle) = handle.open[] == 1

# Ends the use of a handle from now on; it is freed when the calls in progress are over.
let_go(handle::Handle) =
    Threads.atomic_cas!(handle.open, 1, 0) == 1 ? leave(handle) : nothing

# Begins a call; false when the handle is closed.
function enter(handle::Handle)
    while true
        uses = handle.uses[]
        (uses == 0 || handle.open[] == 0) && return false
        Threads.atomic_cas!(handle.uses, uses, uses + 1) == uses && return true
    end
end

function leave(handle::Handle)
    Threads.atomic_sub!(handle.uses, 1) == 1 || return
    handle.free(handle.pointer)
    return
end

# Calls f with the pointer, which stays valid meanwhile.
function using_handle(f, handle::Handle)
    enter(handle) || throw(_usage(handle.refusal))
    try
        return f(handle.pointer)
    finally
        leave(handle)
    end
end

# Takes the pointer out of a handle that no call is using, so that nobody else can; false when one is.
function take_over(handle::Handle)
    Threads.atomic_cas!(handle.open, 1, 0) == 1 || return false
    Threads.atomic_cas!(handle.uses, 1, 0) == 1 && return true
    handle.open[] = 1
    return false
end

function put_back(handle::Handle)
    handle.uses[] = 1
    handle.open[] = 1
    return
end

# ---- Streams that were never closed --------------------------------------------------------------

# Closing a stream waits for its threads, which a finalizer must not do. It cancels the stream and
# leaves the rest to whoever opens or closes the next one.
struct OpenStream
    pointer::Pointer
    abandoned::Threads.Atomic{Int}
    servers::Vector{Server} # of its shards: its threads may wait for them
end
const _UNLISTED = -1 # as `abandoned`
const _streams = OpenStream[]
const _streams_lock = ReentrantLock() # never taken by a finalizer

# list_stream() has to follow. It takes a lock, for which a task may have to wait: not while Ctrl-C is
# put off, which goes by threads.
function stream_handle(pointer::Pointer, servers=Server[])
    stream = OpenStream(pointer, Threads.Atomic{Int}(_UNLISTED), servers)
    abandon = function (pointer)
        if stream.abandoned[] == _UNLISTED
            shf_stream_close(pointer) # nobody had it: it has no threads
        else
            shf_stream_cancel(pointer)
            stream.abandoned[] = 1
        end
        return
    end
    return Handle(pointer, _ -> close_stream(stream), "stream"; at_finalization=abandon, owner=stream)
end

function list_stream(handle::Handle)
    stream = handle.owner::OpenStream
    lock(_streams_lock) do
        push!(_streams, stream)
        stream.abandoned[] = 0
    end
    return handle
end

forget_stream(pointer::Pointer) =
    lock(() -> filter!(stream -> stream.pointer != pointer, _streams), _streams_lock)

function close_stream(stream::OpenStream)
    forget_stream(stream.pointer)
    # Nobody answers what its threads ask for as long as this thread waits for them.
    foreach(server -> _cancel(server, true), stream.servers)
    shf_stream_close(stream.pointer)
    return
end

function close_abandoned()
    abandoned = lock(_streams_lock) do
        found = filter(stream -> stream.abandoned[] == 1, _streams)
        filter!(stream -> stream.abandoned[] == 0, _streams)
        found
    end
    foreach(close_stream, abandoned)
    return
end
