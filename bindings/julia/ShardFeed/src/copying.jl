# Copies of handles: by deepcopy, and to other processes.

# What never changes is shared by its copies, and freed once.
Base.deepcopy_internal(handle::Handle, ::IdDict) = handle
Base.deepcopy_internal(payload::Payload, ::IdDict) = payload
Base.deepcopy_internal(::Stream, ::IdDict) =
    throw(_usage("a stream has no copy; help: open another one"))
Base.deepcopy_internal(::Writer, ::IdDict) =
    throw(_usage("a writer has no copy: it has open files; help: open another one"))
Base.deepcopy_internal(::Batch, ::IdDict) =
    throw(_usage("a batch has no copy; help: copy its columns"))

# Another process opens the same files: a worker of Distributed may be given a Dataset or an Archive.
struct Recipe
    type::Type
    source::Any # what the constructor takes
    options::Any
end

function Serialization.serialize(out::Serialization.AbstractSerializer, dataset::Dataset)
    Serialization.serialize(out, Recipe(Dataset, dataset.urls, collect(dataset.options)))
end

function Serialization.serialize(out::Serialization.AbstractSerializer, archive::Archive)
    Serialization.serialize(out, Recipe(Archive, _source(archive), collect(archive.options)))
end

_source(archive::Archive) = something(archive.handle.owner, archive.url)

# What comes out is the data set or archive itself.
function Serialization.deserialize(in::Serialization.AbstractSerializer, ::Type{Recipe})
    type, source, options = (Serialization.deserialize(in) for _ in fieldnames(Recipe))
    return type(source; options...)
end

Serialization.serialize(::Serialization.AbstractSerializer, ::Union{Handle,Payload,Stream,Batch,Sample,Writer}) =
    throw(_usage(
        "streams, batches, their samples and writers stay in their process; help: send " *
        "copy(sample), the state of a stream, or copies of columns",
    ))
