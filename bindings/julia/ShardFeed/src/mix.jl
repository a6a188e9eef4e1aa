# Mixes: streams whose samples come from other streams, by weight.

"""
    ShardFeed.mix(streams; weights=nothing, options...) -> Stream
    ShardFeed.mix(f, streams; weights=nothing, options...)

A stream that takes each sample from one of `streams`, at random by weight (any unit, above 0; all
equal without `weights`). The proportions are exact in the long run, each stream keeps its own order,
and the option `until` says when the mix ends: `"all"`, `"first"` or `"forever"`. `sample.part` is the
number of the stream, from 0.

The streams must be open and unused; the mix takes them over and closes them with itself. They keep
their own options for reading; those of the mix are for what it makes of the samples: `seed`,
`until`, `batch`, `decode`, ... The keywords `log` and `on_skip`, as in [`ShardFeed.open`](@ref), are
for what the mix itself has to say and skips: samples that it cannot decode. Each stream keeps its own.
`tokenizer`, as there, makes tokens of the texts in batches of the mix.

```jldoctest
julia> first_part = ShardFeed.open("train-000.tar"; epochs=0);

julia> second_part = ShardFeed.open("train-001.tar"; epochs=0);

julia> ShardFeed.mix([first_part, second_part]; weights=[3, 1], seed=1) do stream
           count(sample -> sample.part == 0, Iterators.take(stream, 400))
       end
304
```
"""
function mix(streams; weights=nothing, timeout=0, log=log_to_julia, on_skip=nothing, tokenizer=nothing,
             options...)
    close_abandoned()
    limit = _seconds(timeout)
    parts = Stream[part for part in streams]
    heavy = weights === nothing ? Float64[] : Float64[weight for weight in weights]
    weights === nothing || length(heavy) == length(parts) || throw(_usage(
        "$(length(heavy)) weights for $(length(parts)) streams; help: give one for each",
    ))
    target = Log(log, on_skip)
    servers = reduce(vcat, [part.servers for part in parts]; init=Server[])
    handles = Handle[part.handle for part in parts]
    pointers = Pointer[handle.pointer for handle in handles]
    out = PointerOut(C_NULL)
    error = new_error()
    taken = 0
    try
        for handle in handles
            take_over(handle) || throw(_usage(_no_part(handle, handles[1:taken])))
            taken += 1
        end
        server = start_server(nothing, nothing, tokenizer)
        server === nothing || push!(servers, server)
        given = [pairs(options)...,
                 :timeout => _wait_option(limit, isempty(servers) ? _WAIT : _WAIT_FOR_SERVER)]
        with_options("mix", given, server) do native
            set_log(native, target, nothing)
            code = GC.@preserve heavy shf_stream_mix(
                out, pointers, weights === nothing ? Ptr{Float64}(C_NULL) : pointer(heavy),
                length(pointers), native, error,
            )
            _check(code, error)
        end
    finally
        out[] == C_NULL && foreach(put_back, handles[1:taken])
    end
    foreach(forget_stream, pointers)
    for handle in handles
        handle.refusal = "the stream is a part of a mix; help: use the mix"
    end
    urls = reduce(vcat, [part.urls for part in parts]; init=String[])
    logs = reduce(vcat, [part.logs for part in parts]; init=Log[])
    return Stream(list_stream(stream_handle(out[], servers)), urls, NamedTuple(), limit, [target; logs], servers)
end

_no_part(handle, others) =
    any(other -> other === handle, others) ? "a stream is twice in the mix; help: open it twice" :
    isopen(handle) ? "the stream is in use by another task; help: mix streams that nobody uses" :
    handle.refusal

function mix(f::Function, streams; options...)
    stream = mix(streams; options...)
    try
        return f(stream)
    finally
        close(stream)
    end
end
