# What the library has to say of skipped samples, and of indexes that it makes.
#
# Inside the call of the library a message is only put aside. The user's function runs after the
# call, so that it may do anything, and what it throws goes to whoever made the call.

mutable struct Log
    receive::Any # (level::Symbol, message::String) -> anything, or nothing
    waiting::Vector{Tuple{Int32,String}}
end
Log(receive) = Log(receive, Tuple{Int32,String}[])

function _put_aside(context::Ptr{Cvoid}, level::Int32, message::Ptr{UInt8})
    log = unsafe_pointer_to_objref(context)::Log
    push!(log.waiting, (level, unsafe_string(message)))
    return nothing
end

const _LEVELS = (:error, :warn, :info)

# As in native.jl: what is compiled must not throw.
_log_receiver() = @cfunction(_put_aside, Cvoid, (Ptr{Cvoid}, Int32, Ptr{UInt8}))

# `log` must live as long as what is opened with these options.
function set_log(native::Pointer, log::Log)
    log.receive === nothing && return
    shf_options_set_log(native, Int32(2), _log_receiver(), pointer_from_objref(log))
    return
end

function pass_on(log::Log)
    while !isempty(log.waiting)
        level, message = popfirst!(log.waiting)
        log.receive(_LEVELS[clamp(level + 1, 1, 3)], message)
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
