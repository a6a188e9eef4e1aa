# What the library has to say of skipped samples, and of indexes that it makes.
#
# Inside the call of the library a message is only put aside. The user's function runs after the
# call, so that it may do anything, and what it throws goes to whoever made the call.

"""
    ShardFeed.Skip

A sample or shard that was skipped under `on_error`, as the keyword `on_skip` of
[`ShardFeed.open`](@ref) receives it: `error` (a [`ShardFeedError`](@ref)), `url` of the shard, `key`
of the sample (`nothing` where no sample is known to be at fault), `whole_shard`.
"""
struct Skip
    error::ShardFeedError
    url::String
    key::Union{Nothing,String}
    whole_shard::Bool
end

mutable struct Log
    receive::Any # (level::Symbol, message::String) -> anything, or nothing
    on_skip::Any # (skip::Skip) -> anything, or nothing
    waiting::Vector{Tuple{Int32,String}}
    skips::Vector{Tuple{ErrorBuffer,String,String,Bool}}
end
Log(receive, on_skip=nothing) =
    Log(receive, on_skip, Tuple{Int32,String}[], Tuple{ErrorBuffer,String,String,Bool}[])

function _put_aside(context::Ptr{Cvoid}, level::Int32, message::Ptr{UInt8})
    log = unsafe_pointer_to_objref(context)::Log
    push!(log.waiting, (level, unsafe_string(message)))
    return nothing
end

function _put_skip_aside(context::Ptr{Cvoid}, skip::Ptr{NativeSkip})
    log = unsafe_pointer_to_objref(context)::Log
    native = unsafe_load(skip)
    error = new_error()
    unsafe_copyto!(pointer(error), native.error, length(error))
    push!(log.skips, (error, _text(native.url), _text(native.key), native.whole_shard != 0))
    return nothing
end

const _LEVELS = (:error, :warn, :info)

# As in native.jl: what is compiled must not throw.
_log_receiver() = @cfunction(_put_aside, Cvoid, (Ptr{Cvoid}, Int32, Ptr{UInt8}))
_skip_receiver() = @cfunction(_put_skip_aside, Cvoid, (Ptr{Cvoid}, Ptr{NativeSkip}))

# `log` must live as long as what is opened with these options. With a server the calls are made on
# threads where no Julia code runs: it puts the messages aside.
function set_log(native::Pointer, log::Log, server)
    if server !== nothing
        log.receive === nothing ||
            shf_options_set_log(native, Int32(2), address_of_shf_requests_log[], server.queue)
        log.on_skip === nothing ||
            shf_options_set_on_skip(native, address_of_shf_requests_skip[], server.queue)
        return
    end
    log.receive === nothing ||
        shf_options_set_log(native, Int32(2), _log_receiver(), pointer_from_objref(log))
    log.on_skip === nothing ||
        shf_options_set_on_skip(native, _skip_receiver(), pointer_from_objref(log))
    return
end

function pass_on(log::Log)
    while !isempty(log.waiting)
        level, message = popfirst!(log.waiting)
        log.receive(_LEVELS[clamp(level + 1, 1, 3)], message)
    end
    while !isempty(log.skips)
        error, url, key, whole_shard = popfirst!(log.skips)
        log.on_skip(Skip(_error(error), url, isempty(key) ? nothing : key, whole_shard))
    end
    return
end

# Where messages go unless the keyword `log` says otherwise.
function log_to_julia(level::Symbol, message::String)
    if level === :error
        @error message _group = :shardfeed
    elseif level === :warn
        @warn message _group = :shardfeed
    else
        @info message _group = :shardfeed
    end
    return
end
