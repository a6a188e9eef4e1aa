# Ctrl-C: while something is opened, and never between getting a handle and having it.
#
# Julia delivers an interrupt (SIGINT) to its first thread, at the next safepoint. No exception may
# pass through the library: Ctrl-C is put off during a call, the library asks every 50 ms whether
# one is waiting, and the exception comes when the call is over.

# jl_signal_pending of Julia: not 0 while an interrupt waits. NULL where there is no such variable:
# then an interrupt has to wait for the end of the call.
const _signal_pending = Ref{Ptr{Cint}}(C_NULL)

function _find_signal_pending()
    _signal_pending[] = try
        cglobal(:jl_signal_pending, Cint)
    catch
        C_NULL
    end
    return
end

@inline _is_interrupted() = Threads.threadid() == 1 && _signal_pending[] != C_NULL &&
                            unsafe_load(_signal_pending[]) != 0

struct LeftEarly <: Exception end

# Calls f while Ctrl-C is put off; an interrupt that waits at the end is thrown then. What f made must
# be stored by then. f does not yield: Ctrl-C is put off for the thread.
#
# Not disable_sigint(), which throws out of a call of C at its end: on that Debian's Julia 1.5.3
# crashes. An exception ends the time without interrupts too, when it is caught, and then it is the
# interpreter that throws.
function without_interrupts(f)
    result = nothing
    try
        Base.sigatomic_begin()
        result = f()
        _is_interrupted() && throw(LeftEarly())
        Base.sigatomic_end()
    catch error
        # Here only when no interrupt waits, or when the caller has put off Ctrl-C as well.
        error isa LeftEarly || rethrow()
    end
    return result
end

# ---- Opening -------------------------------------------------------------------------------------

mutable struct Opening
    deadline::Float64 # of time(), 0: none
    interrupted::Bool
end

function _is_over(context::Ptr{Cvoid})
    opening = unsafe_pointer_to_objref(context)::Opening
    opening.interrupted = _is_interrupted()
    return Int32(opening.interrupted || 0 < opening.deadline <= time())
end

# As in native.jl: what is compiled must not throw.
_opening_receiver() = @cfunction(_is_over, Int32, (Ptr{Cvoid},))

# Calls `call`, which opens something with the options `native`, and once that went well `made`, which
# has to store the handle. The result is the code of the call. Ctrl-C ends it. With a server `call`
# makes its call by blocking().
function interruptible(call, native::Pointer; made=() -> nothing, deadline=0.0, server=nothing)
    if server !== nothing
        shf_options_set_interrupt(native, address_of_shf_requests_cancelled[], server.queue)
        result = call()
        without_interrupts(() -> result == OK && made())
        was_interrupted(server) && throw(InterruptException())
        return result
    end
    opening = Opening(deadline, false)
    code = without_interrupts() do
        GC.@preserve opening begin
            shf_options_set_interrupt(native, _opening_receiver(), pointer_from_objref(opening))
            result = call()
            shf_options_set_interrupt(native, C_NULL, C_NULL)
        end
        result == OK && made()
        result
    end
    # The caller has put off Ctrl-C, and a call that ends in no other way has ended by it.
    code == E_CANCELLED && opening.interrupted && throw(InterruptException())
    return code
end
