# Saving the position of a stream, and resuming there.

"""
    ShardFeed.save(stream) -> Vector{UInt8}

The position of the loop over the stream: behind all samples or batches that it has delivered. A few
hundred bytes without samples or secrets, to be stored and given to [`ShardFeed.restore!`](@ref),
in another process or on another machine.

```jldoctest
julia> options = (shuffle=10, seed=3, threads=1);

julia> saved = ShardFeed.open("train-{000..001}.tar"; options...) do stream
           foreach(identity, Iterators.take(stream, 4))
           ShardFeed.save(stream)
       end;

julia> ShardFeed.open("train-{000..001}.tar"; options...) do stream
           ShardFeed.restore!(stream, saved)
           count(sample -> true, stream)
       end
2
```
"""
function save(stream::Stream)
    _begin(stream)
    try
        return using_handle(stream.handle) do pointer
            out = PointerOut(C_NULL)
            unread = stream.count - stream.given
            _check(shf_stream_save(pointer, unread, out, stream.error), stream.error)
            _state_bytes(out[])
        end
    finally
        _end(stream)
    end
end

"""
    ShardFeed.restore!(stream, state) -> stream

Makes a stream that was just opened, with the same shards and options, resume where `state` was saved.
"""
function restore!(stream::Stream, state::AbstractVector{UInt8})
    bytes = Vector{UInt8}(state)
    _begin(stream)
    try
        using_handle(stream.handle) do pointer
            code = shf_stream_restore(pointer, bytes, length(bytes), stream.error)
            _check(code, stream.error)
        end
    finally
        _end(stream)
    end
    return stream
end

"""
    ShardFeed.merge_states(states) -> Vector{UInt8}

Makes one state of those of all consumers of a run (each rank and worker once), which any of them,
and those of another number of ranks and workers, can restore.
"""
function merge_states(states)
    load()
    copies = [Vector{UInt8}(state) for state in states]
    out = PointerOut(C_NULL)
    error = new_error()
    GC.@preserve copies begin
        bytes = [NativeBytes(pointer(copy), length(copy)) for copy in copies]
        _check(shf_state_merge(bytes, length(bytes), out, error), error)
    end
    return _state_bytes(out[])
end

# The bytes of a shf_state, which is freed.
function _state_bytes(state::Pointer)
    bytes = Ref(NativeBytes())
    shf_state_bytes(state, bytes)
    saved = Vector{UInt8}(undef, bytes[].size)
    GC.@preserve saved unsafe_copyto!(pointer(saved), bytes[].data, length(saved))
    shf_state_free(state)
    return saved
end
