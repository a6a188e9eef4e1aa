"""
Feeds machine-learning training from tar and ZIP shards (the WebDataset convention: files that share
a basename are one sample).

```jldoctest
julia> using ShardFeed

julia> ShardFeed.open("train-{000..001}.tar"; shuffle=100, seed=1) do stream
           sum(length(sample["txt"]) for sample in stream)
       end
22
```

[`ShardFeed.open`](@ref) streams samples or [`batches`](@ref) in order or shuffled, [`Dataset`](@ref)
has the samples of many shards by number, [`Archive`](@ref) the members of one file in any order,
[`ShardFeed.Members`](@ref) from front to back; [`ShardFeed.Writer`](@ref) makes shards.
[`ShardFeed.options`](@ref) lists the keywords they take. What goes wrong is a
[`ShardFeedError`](@ref).
"""
module ShardFeed

import Libdl
import Serialization

export Archive, Batch, Dataset, Sample, SampleCopy, ShardFeedError
export batches, get_batch, get_many, indexof, keep

include("native.jl")
include("errors.jl")
include("options.jl")
include("log.jl")
include("opener.jl")
include("tokenizer.jl")
include("handle.jl")
include("interrupt.jl")
include("urls.jl")
include("memory.jl")
include("bytes.jl")
include("sample.jl")
include("stream.jl")
include("mix.jl")
include("saved_state.jl")
include("column.jl")
include("batch.jl")
include("archive.jl")
include("members.jl")
include("dataset.jl")
include("index.jl")
include("plan.jl")
include("writer.jl")
include("copying.jl")

end
