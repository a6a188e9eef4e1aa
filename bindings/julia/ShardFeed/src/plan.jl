# Plans: what each rank and worker of a run would read.

const _CONSUMER = (rank=0, worker=1, lanes=2, shards=3, samples=4, bytes=5)
const _PLANNED_SHARD = (samples=0, bytes=1)

"""
    Plan

What [`ShardFeed.plan`](@ref) gives: `text`, `warnings`, `consumers`, `shards`.
"""
struct Plan
    text::String
    warnings::Vector{String}
    consumers::Vector{NamedTuple}
    shards::Vector{NamedTuple}
end

"""
    ShardFeed.plan(urls; options...) -> Plan

What each rank and worker of a run (options `world_size`, `num_workers`) would read, and what is wrong
with that. Opens no shard. `print(plan)` is for people; `plan.warnings` are texts,
`plan.consumers` have `rank`, `worker`, `lanes`, `shards`, `samples` and `bytes` (`nothing` where not
known), and `plan.shards`, those of the expanded list, have `samples` and `bytes`.

```jldoctest
julia> plan = ShardFeed.plan("train-{000..001}.tar"; world_size=2);

julia> [consumer.shards for consumer in plan.consumers]
2-element Array{Int64,1}:
 1
 1
```
"""
function plan(urls::URLs; options...)
    out = PointerOut(C_NULL)
    error = new_error()
    listed = url_list(urls)
    plan = Ref{Plan}()
    with_options("stream", options) do native
        code = with_texts(listed) do pointers, count
            interruptible(native; made=() -> plan[] = _take_plan(out[])) do
                shf_plan_make(out, pointers, count, native, error)
            end
        end
        _check(code, error, () -> _shards(listed, options))
    end
    return plan[]
end

# What a plan says. It is freed.
function _take_plan(made::Pointer)
    try
        bytes = Ref(NativeBytes())
        shf_plan_text(made, bytes)
        text = _text(bytes[])
        warnings = String[]
        while shf_plan_warning(made, length(warnings), bytes) == OK
            push!(warnings, _text(bytes[]))
        end
        consumers = NamedTuple[
            _known(_CONSUMER, what -> shf_plan_info(made, i - 1, what)) for
            i in 1:shf_plan_consumer_count(made)
        ]
        shards = NamedTuple[
            _known(_PLANNED_SHARD, what -> shf_plan_shard_info(made, i - 1, what)) for
            i in 1:shf_plan_shard_count(made)
        ]
        return Plan(text, warnings, consumers, shards)
    finally
        shf_plan_free(made)
    end
end

# The properties of these numbers.
function _known(numbers, info)
    return map(numbers) do what
        value = info(Int32(what))
        value == typemax(UInt64) ? nothing : Int(value)
    end
end

Base.show(io::IO, plan::Plan) = print(io, rstrip(plan.text, '\n'))
