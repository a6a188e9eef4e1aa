# Openers: URLs that a Julia function opens. And what serves tokenizers too, see tokenizer.jl.
#
# The library reads and decodes on threads of its own, and Julia code cannot run there: not at all
# before Julia 1.9, and later it would wait for the garbage collector, which waits for the call that
# waits for it. So the library puts requests into a queue, and a task answers them. Calls that would
# wait for an answer are made by a thread of the library meanwhile, and their caller waits as a task
# does.

mutable struct OpenedFile
    contents::Any # an IO, or a vector of bytes
    position::Int # of an IO: where it is
end

mutable struct RunningCall
    over::Base.Event
    result::Int32
end
RunningCall() = RunningCall(Base.Event(), Int32(0))

# What serves an opener and a tokenizer, until the library says that nobody uses them any more.
mutable struct Server
    queue::Pointer # C_NULL once it is over
    opener::Any         # or nothing
    tokenizer::Any      # or nothing
    woken::Base.AsyncCondition
    lock::ReentrantLock # for what follows
    files::Dict{UInt64,OpenedFile}
    calls::Dict{UInt64,RunningCall}
    last::UInt64        # number of files and calls
    giving_up::Int      # calls that end only when what they ask for is answered, or cancelled
    served::Int         # what is in use still: options, and all that was opened with them
    interrupted::Bool
    log::Any            # a Log, or nothing
end

const _OPEN, _READ, _CLOSE, _RELEASE, _DONE, _LOG, _SKIP, _TOKENIZE = Int32(1):Int32(8)
const _SEQUENTIAL, _ONE_THREAD = UInt32(1), UInt32(2)
const _UNKNOWN = typemax(UInt64)

# Nothing to serve needs no server.
function start_server(opener, log=nothing, tokenizer=nothing)
    opener === nothing && tokenizer === nothing && return nothing
    load()
    opener !== nothing && isempty(methods(opener)) &&
        throw(_usage("opener is a $(typeof(opener)); help: give a function " *
                     "of a URL that gives an IO or a vector of bytes"))
    tokenizer !== nothing && isempty(methods(tokenizer)) &&
        throw(_usage("tokenizer is a $(typeof(tokenizer)); help: give a function " *
                     "of a text that gives a vector of whole numbers"))
    _at_exit[] || (_at_exit[] = true; atexit(_end_servers))
    woken = Base.AsyncCondition()
    queue = shf_requests_new(_wake_function(), woken.handle)
    queue == C_NULL && throw(OutOfMemoryError())
    served = count(!isnothing, (opener, tokenizer))
    server = Server(queue, opener, tokenizer, woken, ReentrantLock(), Dict(), Dict(), 0, 0, served, false, log)
    lock(() -> push!(_servers, server), _servers_lock)
    @async serve(server)
    return server
end

_wake_function() = cglobal(:uv_async_send)

# At the end of the program nobody may be woken any more.
const _servers = Set{Server}()
const _servers_lock = ReentrantLock()
const _at_exit = Ref(false)
_end_servers() = foreach(end_server, collect(_servers))

function end_server(server::Server)
    queue, server.queue = server.queue, C_NULL
    queue == C_NULL && return
    shf_requests_free(queue)
    lock(() -> delete!(_servers, server), _servers_lock)
    close(server.woken)
    return
end

# Makes what is opened with these options ask the server: for all URLs but those of local files, and
# for tokens.
function set_server(native::Pointer, server::Server)
    error = new_error()
    scheme = "*"
    code = OK
    if server.opener !== nothing
        code = GC.@preserve scheme shf_options_set_requests(native, pointer(scheme), server.queue, error)
    end
    if code == OK && server.tokenizer !== nothing
        code = shf_options_set_tokenizer_requests(native, server.queue, error)
    end
    code == OK || end_server(server)
    _check(code, error)
    return
end
set_server(::Pointer, ::Nothing) = nothing

# ---- Answering -----------------------------------------------------------------------------------

function serve(server::Server)
    while !(server.served <= 0 && isempty(server.calls))
        try
            wait(server.woken)
        catch error
            error isa InterruptException || break # it was closed
            _interrupt(server)
        end
        take_requests(server)
    end
    end_server(server)
    return
end

# Begins to answer all that is asked now. Any task may do it.
function take_requests(server::Server)
    lock(server.lock) do
        request = Ref(NativeRequest())
        while server.queue != C_NULL && shf_requests_take(server.queue, request) == OK
            _handle(server, request[])
            request[] = NativeRequest()
        end
    end
    return
end

# Has the lock. Nothing here waits: that is for tasks.
function _handle(server::Server, request::NativeRequest)
    if request.kind == _OPEN
        url = _text(request.text)
        @async _answer(server, request.id) do
            _open_file(server, url)
        end
    elseif request.kind == _READ
        file = server.files[request.object]
        @async _answer(server, request.id) do
            _read_file(file, Int(request.offset), Int(request.size))
        end
    elseif request.kind == _TOKENIZE
        texts = _texts_of(request)
        @async _answer(server, request.id) do
            _make_tokens(server.tokenizer, texts)
        end
    elseif request.kind == _CLOSE
        file = pop!(server.files, request.object)
        file.contents isa IO && @async _close_quietly(file.contents)
    elseif request.kind == _RELEASE
        server.served -= 1
    elseif request.kind == _DONE
        call = pop!(server.calls, request.id)
        call.result = request.result
        notify(call.over)
    elseif server.log isa Log
        request.kind == _LOG && push!(server.log.waiting, (request.result, _text(request.text)))
        if request.kind == _SKIP
            error = new_error()
            unsafe_copyto!(pointer(error), request.error, length(error))
            push!(server.log.skips,
                  (error, _text(request.text), _text(request.key), request.result != 0))
        end
    end
    return
end

# What an answer is made of. `bytes` are those of a READ, `file` is that of an OPEN; the tokens of a
# TOKENIZE are `bytes` too, with `counts`.
struct Answer
    code::Int32
    os_error::Int32
    text::String
    bytes::Any
    size::UInt64
    file::Union{OpenedFile,Nothing}
    flags::UInt32
    counts::Any
end
Answer(code, os_error, text, bytes, size, file, flags) =
    Answer(code, os_error, text, bytes, size, file, flags, nothing)

function _answer(f, server::Server, id::UInt64)
    answer = try
        f()
    catch error
        error isa InterruptException && _interrupt(server)
        _failure(error)
    end
    number = UInt64(0)
    if answer.file !== nothing
        number = lock(server.lock) do
            server.last += 1
            server.files[server.last] = answer.file
            server.last
        end
    end
    code = E_NOT_FOUND
    bytes, counts = answer.bytes, answer.counts
    GC.@preserve answer bytes counts begin
        text = isempty(answer.text) ? Ptr{UInt8}(C_NULL) : pointer(answer.text)
        data = bytes === nothing ? Ptr{UInt8}(C_NULL) : Ptr{UInt8}(pointer(bytes))
        each = counts === nothing ? Ptr{UInt64}(C_NULL) : pointer(counts)
        native = Ref(NativeAnswer(sizeof(NativeAnswer), text, data, answer.size, number, answer.code,
                                  answer.os_error, answer.flags, each))
        server.queue == C_NULL || (code = shf_requests_answer(server.queue, id, native))
    end
    if code != OK && answer.file !== nothing # nobody waits for it any more
        lock(() -> delete!(server.files, number), server.lock)
        answer.file.contents isa IO && _close_quietly(answer.file.contents)
    end
    return
end

# The class that an exception of the opener is; the text is cut by the library.
function _failure(error)
    code = error isa ShardFeedError ? error.code :
           error isa InterruptException ? E_CANCELLED :
           error isa OutOfMemoryError ? E_NOMEM :
           error isa Union{ArgumentError,MethodError,TypeError,UndefVarError,BoundsError,KeyError} ?
           E_USAGE : E_IO
    os_error = error isa SystemError ? Int32(error.errnum) :
               error isa Base.IOError && error.code < 0 ? Int32(-error.code) : Int32(0)
    text = error isa ShardFeedError ? error.message : "the opener: " * sprint(showerror, error)
    return Answer(code, os_error, replace(text, '\0' => "\\0"), nothing, 0, nothing, 0)
end

function _open_file(server::Server, url::String)
    given = Base.invokelatest(server.opener, url)
    version = ""
    if given isa Pair
        given, version = first(given), String(last(given))
    end
    if given isa AbstractVector{UInt8}
        bytes = given isa DenseVector{UInt8} ? given : Vector{UInt8}(given)
        return Answer(OK, 0, version, nothing, length(bytes), OpenedFile(bytes, 0), 0)
    end
    given isa IO || throw(ArgumentError("it gave a $(typeof(given)), and neither an IO nor a vector of bytes"))
    isempty(version) && (version = _version(given))
    size = _size(given)
    flags = size === nothing ? _ONE_THREAD | _SEQUENTIAL : _ONE_THREAD
    return Answer(OK, 0, version, nothing, something(size, _UNKNOWN), OpenedFile(given, 0), flags)
end

# The number of bytes of an IO that can be read anywhere, from its start; `nothing` for others.
function _size(io::IO)
    hasmethod(seekend, Tuple{typeof(io)}) && hasmethod(seek, Tuple{typeof(io),Int}) || return nothing
    try
        seekend(io)
        size = position(io)
        seek(io, 0)
        return UInt64(size)
    catch error
        error isa InterruptException && rethrow()
        return nothing # a FIFO, or what only claims to seek
    end
end

# A text that is another one for other contents, of a local file.
function _version(io::IO)
    io isa IOStream || return ""
    status = stat(io)
    return isfile(status) ? string(status.inode, "-", status.size, "-", status.mtime) : ""
end

function _read_file(file::OpenedFile, offset::Int, size::Int)
    if !(file.contents isa IO)
        bytes = file.contents[offset+1:min(offset + size, length(file.contents))]
    else
        file.position == offset || seek(file.contents, offset)
        bytes = read(file.contents, size)
        file.position = offset + length(bytes)
    end
    return Answer(OK, 0, "", bytes, length(bytes), nothing, 0)
end

function _close_quietly(io::IO)
    try
        close(io)
    catch
    end
    return
end

# ---- Calls that wait for answers -----------------------------------------------------------------

# The number that a function of the library takes for an argument of type T.
_word(pointer::Ptr) = UInt64(UInt(pointer))
_word(number::Signed) = reinterpret(UInt64, Int64(number))
_word(number::Unsigned) = UInt64(number)

# Calls f, one of the library's functions that may wait; its result. With a server a thread of the
# library calls it, while tasks answer: Ctrl-C cancels what it asks for, and was_interrupted() then.
blocking(::Nothing, f, arguments...; deadline=0.0) = f(arguments...)
function blocking(server::Server, f, arguments...; deadline=0.0)
    address, types = _BLOCKING[f]
    kept = Any[Base.cconvert(T, argument) for (T, argument) in zip(types, arguments)]
    call = RunningCall()
    error = new_error()
    GC.@preserve kept arguments begin
        words = UInt64[_word(Base.unsafe_convert(T, one)) for (T, one) in zip(types, kept)]
        number = lock(server.lock) do
            server.calls[server.last += 1] = call
            server.last
        end
        code = shf_requests_call(server.queue, number, address[], words, length(words), error)
        code == OK || lock(() -> delete!(server.calls, number), server.lock)
        _check(code, error)
        _await(server, call, deadline)
    end
    return call.result
end

# The call uses memory of its caller: that has to wait for its end, whatever happens.
function _await(server::Server, call::RunningCall, deadline)
    timer = deadline == 0 ? nothing : Timer(max(deadline - time(), 0.001)) do _
        _cancel(server, true)
    end
    lock(() -> server.giving_up += 1, server.lock)
    while true
        try
            wait(call.over)
            break
        catch error
            error isa InterruptException || rethrow()
            _interrupt(server)
        end
    end
    timer === nothing || close(timer)
    lock(server.lock) do
        server.giving_up -= 1
        server.giving_up == 0 && _cancel(server, false)
    end
    return
end

# Ctrl-C, which comes to whichever task Julia chooses.
function _interrupt(server::Server)
    server.interrupted = true
    server.giving_up > 0 && _cancel(server, true)
    return
end

_cancel(server::Server, on) =
    server.queue == C_NULL ? nothing : shf_requests_cancel(server.queue, Int32(on))

# Whether Ctrl-C came since it was last asked.
function was_interrupted(server::Server)
    was, server.interrupted = server.interrupted, false
    return was
end
was_interrupted(::Nothing) = false

# As blocking(), then `store` with the result, between which Ctrl-C does not come.
function storing(store, server, f, arguments...)
    if server === nothing
        return without_interrupts() do
            code = f(arguments...)
            store(code)
            code
        end
    end
    code = blocking(server, f, arguments...)
    without_interrupts(() -> store(code))
    was_interrupted(server) && throw(InterruptException())
    return code
end

# As blocking(), for what Ctrl-C takes nothing from.
function answered(server, f, arguments...)
    code = blocking(server, f, arguments...)
    was_interrupted(server) && throw(InterruptException())
    return code
end
