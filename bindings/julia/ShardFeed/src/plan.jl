# Plans: what each rank and worker of a run would read.

const _CONSUMER = (rank=0, worker=1, lanes=2, shards=3, samples=4, bytes=5)
const _PLANNED_SHARD = (samples=0, bytes=1)

"""
    Plan

What [`ShardFeed.plan`](@ref) and [`ShardFeed.simulate_plan`](@ref) give: `text`, `warnings`,
`consumers`, `shards`; [`ShardFeed.reads`](@ref) has more.
"""
struct Plan
    text::String
    warnings::Vector{String}
    consumers::Vector{NamedTuple}
    shards::Vector{NamedTuple}
    handle::Handle
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
            interruptible(native; made=() -> plan[] = _plan_of(out[])) do
                shf_plan_make(out, pointers, count, native, error)
            end
        end
        _check(code, error, () -> _shards(listed, options))
    end
    return plan[]
end

"""
    ShardFeed.simulate_plan(samples; bytes=nothing, options...) -> Plan

A plan of shards that need not be there: `samples` has the number of each of them, and `bytes` their
sizes, where these are to be known. Options are those of [`ShardFeed.plan`](@ref).

```jldoctest
julia> plan = ShardFeed.simulate_plan(fill(1000, 100); world_size=8);

julia> [consumer.samples for consumer in plan.consumers][[1, 8]]
2-element Array{Int64,1}:
 13000
 12000
```
"""
function simulate_plan(samples; bytes=nothing, options...)
    counts = _shard_numbers(samples)
    sizes = bytes === nothing ? UInt64[] : _shard_numbers(bytes)
    bytes === nothing || length(sizes) == length(counts) ||
        throw(_usage("samples of $(length(counts)) shards, and bytes of $(length(sizes))"))
    out = PointerOut(C_NULL)
    error = new_error()
    with_options("stream", options) do native
        code = GC.@preserve counts sizes shf_plan_simulate(
            out, pointer(counts), isempty(sizes) ? Ptr{UInt64}(C_NULL) : pointer(sizes), length(counts), native, error)
        _check(code, error)
    end
    return _plan_of(out[])
end

function _shard_numbers(given)
    negative = findfirst(number -> number < 0, given)
    negative === nothing || throw(_usage("a shard has $(given[negative]) samples or bytes"))
    return collect(UInt64, given)
end

"""
    ShardFeed.reads(plan, consumer) -> Vector

When `plan.consumers[consumer]` reads which shard in the first epoch, in the order of beginning: `shard`,
its place in `plan.shards`; `samples` that are read of it; and `taken`, the range of the samples, counted
from 1, that the consumer takes while it is read. A sample is read when its lane needs it to give the
next one: threads read ahead of that.

```jldoctest
julia> plan = ShardFeed.simulate_plan([10, 20, 30]; world_size=2);

julia> [(read.shard, read.samples, read.taken) for read in ShardFeed.reads(plan, 1)]
2-element Array{Tuple{Int64,Int64,UnitRange{Int64}},1}:
 (1, 10, 1:10)
 (3, 30, 11:40)
```
"""
function reads(plan::Plan, consumer::Integer)
    consumer in eachindex(plan.consumers) || throw(BoundsError(plan.consumers, consumer))
    numbers = UInt64[]
    using_handle(plan.handle) do pointer_to
        error = new_error()
        count = Ref{Csize_t}(0)
        for _ in 1:2 # how many there are, and they
            code = GC.@preserve numbers shf_plan_reads(
                pointer_to, consumer - 1, pointer(numbers), length(numbers) ÷ 4, count, error)
            _check(code, error)
            resize!(numbers, 4 * count[])
        end
    end
    return [(shard=Int(read[1]) + 1, samples=Int(read[2]), taken=Int(read[3])+1:Int(read[4])+1)
            for read in Iterators.partition(numbers, 4)]
end

# What a plan says.
function _plan_of(made::Pointer)
    handle = Handle(made, shf_plan_free, "plan")
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
    return Plan(text, warnings, consumers, shards, handle)
end

# The properties of these numbers.
function _known(numbers, info)
    return map(numbers) do what
        value = info(Int32(what))
        value == typemax(UInt64) ? nothing : Int(value)
    end
end

Base.show(io::IO, plan::Plan) = print(io, rstrip(plan.text, '\n'))
