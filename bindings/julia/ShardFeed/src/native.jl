# The functions of include/shardfeed.h, one line each, and where the library is found.
#
# Each is a leaf: it calls C, throws nothing and calls nothing that throws. (Under --compile=min
# these lines are the only ones that are compiled, and Julia 1.5 with Debian's libunwind crashes on
# exceptions that pass through compiled code.) What they return is looked at by their callers.

const _FUNCTIONS = Pair{Symbol,Ref{Ptr{Cvoid}}}[]
# Address and types of those that may wait, for opener.jl.
const _BLOCKING = IdDict{Any,Tuple{Ref{Ptr{Cvoid}},Any}}()

# @native name(argument::Type, ...)::Result              declares a function of the library
# @native blocking name(argument::Type, ...)::Result     one that may wait: where Julia can, garbage
#                                                        is collected meanwhile by other threads
macro native(words...)
    signature = words[end]
    blocking = length(words) == 2 && words[1] === :blocking
    call, result = signature.args
    name = call.args[1]
    arguments = call.args[2:end]
    names = [argument.args[1] for argument in arguments]
    types = [argument.args[2] for argument in arguments]
    address = Symbol(:address_of_, name)
    body = blocking && VERSION >= v"1.12" ? _gc_safe_call(:($address[]), names, types, result) :
           Expr(:call, :ccall, :($address[]), result, Expr(:tuple, types...), names...)
    quote
        const $address = Ref{Ptr{Cvoid}}(C_NULL)
        push!(_FUNCTIONS, $(QuoteNode(name)) => $address)
        $name($(names...)) = $body
        $(blocking ? :(_BLOCKING[$name] = ($address, ($(types...),))) : nothing)
    end |> esc
end

# @ccall gc_safe=true $address(name::type, ...)::result
function _gc_safe_call(address, names, types, result)
    typed = [Expr(:(::), name, type) for (name, type) in zip(names, types)]
    call = Expr(:(::), Expr(:call, Expr(:$, address), typed...), result)
    return Expr(:macrocall, Symbol("@ccall"), nothing, Expr(:(=), :gc_safe, true), call)
end

# ---- Structures, as the header freezes them ------------------------------------------------------

struct NativeBytes
    data::Ptr{UInt8}
    size::Csize_t
end
NativeBytes() = NativeBytes(C_NULL, 0)

struct NativeSkip
    error::Ptr{UInt8}
    url::NativeBytes
    key::NativeBytes
    whole_shard::Int32
end

struct NativeText
    text::NativeBytes
    key::NativeBytes
    url::NativeBytes
end

struct NativeRequest
    struct_size::Csize_t
    id::UInt64
    object::UInt64
    offset::UInt64
    size::UInt64
    text::Ptr{UInt8}
    key::Ptr{UInt8}
    error::Ptr{UInt8}
    kind::Int32
    result::Int32
    texts::Ptr{NativeText}
end
NativeRequest() =
    NativeRequest(sizeof(NativeRequest), 0, 0, 0, 0, C_NULL, C_NULL, C_NULL, 0, 0, C_NULL)

struct NativeAnswer
    struct_size::Csize_t
    text::Ptr{UInt8}
    data::Ptr{UInt8}
    size::UInt64
    object::UInt64
    code::Int32
    os_error::Int32
    flags::UInt32
    counts::Ptr{UInt64}
end

struct NativeArray
    data::Ptr{Cvoid}
    size::Csize_t
    offsets::Ptr{Int64}
    shapes::Ptr{Int64}
    shape::NTuple{8,Int64}
    ndim::Int32
    row_ndim::Int32
    dtype::Int32
    kind::Int32
end
NativeArray() =
    NativeArray(C_NULL, 0, C_NULL, C_NULL, (0, 0, 0, 0, 0, 0, 0, 0), 0, 0, 0, 0)

# A shf_error: code and os_error (Int32), offset (UInt64), message. Plain memory, so that a code that
# this version does not know is a number like any other.
const ErrorBuffer = Vector{UInt8}
new_error() = ErrorBuffer(undef, 1024)

const Pointer = Ptr{Cvoid}
const PointerOut = Ref{Ptr{Cvoid}}
const NumberOut = Ref{UInt64}

const OK = Int32(0)
const END = Int32(1)
const E_FORMAT = Int32(-1)
const E_IO = Int32(-13)
const E_NOMEM = Int32(-15)
const E_CANCELLED = Int32(-16)
const E_TIMEOUT = Int32(-17)
const E_USAGE = Int32(-19)
const E_NOT_FOUND = Int32(-21)

const COUNTER_NAME = Int32(0)

# ---- Functions -----------------------------------------------------------------------------------

@native shf_version()::UInt32
@native shf_version_string()::Ptr{UInt8}
@native shf_feature(name::Ptr{UInt8})::Ptr{UInt8}
@native shf_strerror(code::Int32)::Ptr{UInt8}
@native shf_error_name(code::Int32)::Ptr{UInt8}

@native shf_options_new()::Pointer
@native shf_options_free(options::Pointer)::Cvoid
@native shf_options_set(options::Pointer, name::Ptr{UInt8}, value::Ptr{UInt8}, error::Ptr{UInt8})::Int32
@native shf_options_get(options::Pointer, name::Ptr{UInt8}, out::Ptr{NativeBytes}, error::Ptr{UInt8})::Int32
@native shf_option_describe(index::Csize_t, what::Int32)::Ptr{UInt8}
@native shf_options_set_log(options::Pointer, level::Int32, log::Ptr{Cvoid}, context::Ptr{Cvoid})::Cvoid
@native shf_options_set_on_skip(options::Pointer, on_skip::Ptr{Cvoid}, context::Ptr{Cvoid})::Cvoid
@native shf_options_set_interrupt(options::Pointer, interrupt::Ptr{Cvoid}, context::Ptr{Cvoid})::Cvoid
@native shf_options_set_shard_name(options::Pointer, name::Ptr{Cvoid}, context::Ptr{Cvoid})::Cvoid

@native shf_options_set_requests(options::Pointer, scheme::Ptr{UInt8}, requests::Pointer, error::Ptr{UInt8})::Int32

@native shf_options_set_tokenizer_requests(options::Pointer, requests::Pointer, error::Ptr{UInt8})::Int32

@native shf_requests_new(wake::Ptr{Cvoid}, context::Ptr{Cvoid})::Pointer
@native shf_requests_free(requests::Pointer)::Cvoid
@native shf_requests_take(requests::Pointer, out::Ptr{NativeRequest})::Int32
@native shf_requests_answer(requests::Pointer, id::UInt64, answer::Ptr{NativeAnswer})::Int32
@native shf_requests_cancel(requests::Pointer, on::Int32)::Cvoid
@native shf_requests_cancelled(requests::Pointer)::Int32
@native shf_requests_log(requests::Pointer, level::Int32, message::Ptr{UInt8})::Cvoid
@native shf_requests_skip(requests::Pointer, skip::Ptr{NativeSkip})::Cvoid
@native shf_requests_call(requests::Pointer, id::UInt64, call::Ptr{Cvoid}, arguments::Ptr{UInt64}, count::Csize_t, error::Ptr{UInt8})::Int32

@native blocking shf_expand_urls(urls::Ptr{Ptr{UInt8}}, count::Csize_t, options::Pointer, each::Ptr{Cvoid}, context::Ptr{Cvoid}, error::Ptr{UInt8})::Int32

@native blocking shf_stream_open(out::Ptr{Pointer}, urls::Ptr{Ptr{UInt8}}, count::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_stream_mix(out::Ptr{Pointer}, parts::Ptr{Pointer}, weights::Ptr{Float64}, count::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_stream_next_block(stream::Pointer, most::Csize_t, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native blocking shf_stream_next_batch(stream::Pointer, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native shf_stream_stat(stream::Pointer, stat::Int32)::UInt64
@native shf_stat_describe(stat::Int32, what::Int32)::Ptr{UInt8}
@native shf_stream_cancel(stream::Pointer)::Cvoid
@native blocking shf_stream_close(stream::Pointer)::Cvoid

@native shf_stream_save(stream::Pointer, unread::Csize_t, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native shf_stream_restore(stream::Pointer, data::Ptr{UInt8}, size::Csize_t, error::Ptr{UInt8})::Int32
@native shf_state_merge(states::Ptr{NativeBytes}, count::Csize_t, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native shf_state_bytes(state::Pointer, out::Ptr{NativeBytes})::Cvoid
@native shf_state_free(state::Pointer)::Cvoid

@native blocking shf_plan_make(out::Ptr{Pointer}, urls::Ptr{Ptr{UInt8}}, count::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_plan_text(plan::Pointer, out::Ptr{NativeBytes})::Cvoid
@native shf_plan_warning(plan::Pointer, index::Csize_t, out::Ptr{NativeBytes})::Int32
@native shf_plan_consumer_count(plan::Pointer)::UInt64
@native shf_plan_info(plan::Pointer, consumer::UInt64, what::Int32)::UInt64
@native shf_plan_shard_count(plan::Pointer)::UInt64
@native shf_plan_shard_info(plan::Pointer, shard::UInt64, what::Int32)::UInt64
@native shf_plan_simulate(out::Ptr{Pointer}, samples::Ptr{UInt64}, bytes::Ptr{UInt64}, count::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_plan_reads(plan::Pointer, consumer::UInt64, reads::Ptr{UInt64}, room::Csize_t, count::Ptr{Csize_t}, error::Ptr{UInt8})::Int32
@native shf_plan_free(plan::Pointer)::Cvoid

@native shf_sample_ref(sample::Pointer)::Pointer
@native shf_sample_unref(sample::Pointer)::Cvoid
@native shf_sample_key(sample::Pointer, out::Ptr{NativeBytes})::Cvoid
@native shf_sample_url(sample::Pointer, out::Ptr{NativeBytes})::Cvoid
@native shf_sample_field_count(sample::Pointer)::Csize_t
@native shf_sample_field(sample::Pointer, index::Csize_t, name::Ptr{NativeBytes}, data::Ptr{NativeBytes})::Int32
@native shf_sample_find(sample::Pointer, name::Ptr{UInt8}, size::Csize_t, out::Ptr{NativeBytes})::Int32
@native shf_sample_info(sample::Pointer, what::Int32)::UInt64

@native shf_block_unref(block::Pointer)::Cvoid
@native shf_block_sample_count(block::Pointer)::Csize_t
@native shf_block_sample(block::Pointer, index::Csize_t)::Pointer

@native blocking shf_batch_make(out::Ptr{Pointer}, samples::Ptr{Pointer}, count::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_batch_ref(batch::Pointer)::Pointer
@native shf_batch_unref(batch::Pointer)::Cvoid
@native shf_batch_row_count(batch::Pointer)::Csize_t
@native shf_batch_column_count(batch::Pointer)::Csize_t
@native shf_batch_column(batch::Pointer, index::Csize_t, name::Ptr{NativeBytes}, array::Ptr{NativeArray})::Int32

@native blocking shf_archive_open(out::Ptr{Pointer}, url::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_archive_open_memory(out::Ptr{Pointer}, data::Ptr{UInt8}, size::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_archive_close(archive::Pointer)::Cvoid
@native shf_archive_member_count(archive::Pointer)::UInt64
@native shf_archive_find(archive::Pointer, name::Ptr{UInt8}, size::Csize_t, position::Ptr{UInt64}, error::Ptr{UInt8})::Int32
@native shf_archive_name(archive::Pointer, position::UInt64, out::Ptr{NativeBytes})::Int32
@native shf_archive_info(archive::Pointer, position::UInt64, what::Int32)::UInt64
@native blocking shf_archive_read(archive::Pointer, position::UInt64, buffer::Ptr{UInt8}, capacity::Csize_t, error::Ptr{UInt8})::Int32
@native blocking shf_archive_read_many(archive::Pointer, positions::Ptr{UInt64}, count::Csize_t, buffers::Ptr{Ptr{UInt8}}, error::Ptr{UInt8})::Int32
@native blocking shf_archive_view(archive::Pointer, position::UInt64, out::Ptr{NativeBytes}, error::Ptr{UInt8})::Int32

@native blocking shf_members_open(out::Ptr{Pointer}, url::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_members_next(members::Pointer, name::Ptr{NativeBytes}, error::Ptr{UInt8})::Int32
@native shf_members_info(members::Pointer, what::Int32)::UInt64
@native shf_members_text(members::Pointer, what::Int32, out::Ptr{NativeBytes})::Int32
@native blocking shf_members_read(members::Pointer, buffer::Ptr{UInt8}, capacity::Csize_t, size::Ptr{Csize_t}, error::Ptr{UInt8})::Int32
@native shf_members_cancel(members::Pointer)::Cvoid
@native blocking shf_members_close(members::Pointer)::Cvoid

@native blocking shf_dataset_open(out::Ptr{Pointer}, urls::Ptr{Ptr{UInt8}}, count::Csize_t, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_dataset_close(dataset::Pointer)::Cvoid
@native shf_dataset_sample_count(dataset::Pointer)::UInt64
@native blocking shf_dataset_get(dataset::Pointer, number::UInt64, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native blocking shf_dataset_get_many(dataset::Pointer, numbers::Ptr{UInt64}, count::Csize_t, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native blocking shf_dataset_get_batch(dataset::Pointer, numbers::Ptr{UInt64}, count::Csize_t, options::Pointer, out::Ptr{Pointer}, error::Ptr{UInt8})::Int32
@native blocking shf_dataset_find(dataset::Pointer, key::Ptr{UInt8}, size::Csize_t, number::Ptr{UInt64}, error::Ptr{UInt8})::Int32
@native shf_dataset_shard(dataset::Pointer, number::UInt64, shard::Ptr{UInt64}, first::Ptr{UInt64})::Int32

@native blocking shf_index_build(url::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_index_export(urls::Ptr{Ptr{UInt8}}, count::Csize_t, format::Int32, path::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_index_import(url::Ptr{UInt8}, format::Int32, path::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32

@native shf_writer_open(out::Ptr{Pointer}, pattern::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_writer_begin(writer::Pointer, key::Ptr{UInt8}, size::Csize_t, error::Ptr{UInt8})::Int32
@native shf_writer_field_borrowed(writer::Pointer, name::Ptr{UInt8}, name_size::Csize_t, data::Ptr{UInt8}, size::Csize_t, error::Ptr{UInt8})::Int32
@native blocking shf_writer_field_file(writer::Pointer, name::Ptr{UInt8}, name_size::Csize_t, path::Ptr{UInt8}, error::Ptr{UInt8})::Int32
@native blocking shf_writer_field_url(writer::Pointer, name::Ptr{UInt8}, name_size::Csize_t, url::Ptr{UInt8}, error::Ptr{UInt8})::Int32
@native blocking shf_writer_end(writer::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_writer_write(writer::Pointer, sample::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_writer_next_shard(writer::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_writer_flush(writer::Pointer, durable::Int32, error::Ptr{UInt8})::Int32
@native blocking shf_writer_finish(writer::Pointer, error::Ptr{UInt8})::Int32
@native shf_writer_shards(writer::Pointer)::UInt64
@native shf_writer_shard_info(writer::Pointer, index::UInt64, what::Int32)::UInt64
@native shf_writer_shard_text(writer::Pointer, index::UInt64, what::Int32, out::Ptr{NativeBytes})::Int32
@native blocking shf_publish_prepared(token::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_discard_prepared(token::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native blocking shf_discard_left(pattern::Ptr{UInt8}, options::Pointer, error::Ptr{UInt8})::Int32
@native shf_writer_cancel(writer::Pointer)::Cvoid
@native blocking shf_writer_close(writer::Pointer)::Cvoid

# ---- The library ---------------------------------------------------------------------------------

const _loading = ReentrantLock()
const _library_path = Ref("")

# The name or path of the library: environment variable SHARDFEED_LIB, preference "libshardfeed",
# what the linker finds.
function find_library()
    path = get(ENV, "SHARDFEED_LIB", "")
    isempty(path) || return path, "the environment variable SHARDFEED_LIB"
    if isdefined(Base, :get_preferences) # Julia 1.6 and later
        preferences = Base.get_preferences(Base.PkgId(@__MODULE__).uuid)
        path = get(preferences, "libshardfeed", "")
        path isa String && !isempty(path) && return path, "the preference libshardfeed"
    end
    return Libdl.find_library(["libshardfeed.so.0", "libshardfeed"]), ""
end

# Loads the library unless that is done. All that makes a handle, and all that needs none, calls it.
function load()
    isempty(_library_path[]) || return
    lock(_loading) do
        isempty(_library_path[]) || return
        path, chosen_by = find_library()
        isempty(path) && throw(_load_error("libshardfeed is not found"))
        # Without RTLD_DEEPBIND, Julia's default: the library must use the unwinder that the C++
        # runtime uses, and where libunwind is loaded that is not the one of its own dependencies.
        library = Libdl.dlopen(path, Libdl.RTLD_NOW | Libdl.RTLD_LOCAL; throw_error=false)
        if library === nothing
            of = isempty(chosen_by) ? "" : " of $chosen_by"
            throw(_load_error("$path$of cannot be loaded"))
        end
        addresses = [Libdl.dlsym(library, name; throw_error=false) for (name, _) in _FUNCTIONS]
        for ((name, _), address) in zip(_FUNCTIONS, addresses)
            address === nothing && throw(_load_error("$path has no function $name: it is too old"))
        end
        for ((_, target), address) in zip(_FUNCTIONS, addresses)
            target[] = address
        end
        _find_signal_pending()
        _library_path[] = path
    end
    return
end

_load_error(cause) = ShardFeedError(
    E_USAGE,
    "$cause; help: install shardfeed 0.1 or later, and set the environment variable SHARDFEED_LIB " *
    "or the preference libshardfeed to the path of libshardfeed.so.0",
)

_text(pointer::Ptr{UInt8}) = pointer == C_NULL ? nothing : unsafe_string(pointer)
_text(bytes::NativeBytes) = bytes.size == 0 ? "" : unsafe_string(bytes.data, bytes.size)

"""
    ShardFeed.library_version() -> VersionNumber

The version of the library that was loaded. It is looked for in the environment variable
`SHARDFEED_LIB`, in the preference `libshardfeed`, and where the system's linker looks.

```jldoctest
julia> ShardFeed.library_version() >= v"0.1"
true
```
"""
function library_version()
    load()
    return VersionNumber(_text(shf_version_string()))
end

"""
    ShardFeed.feature(name) -> Union{String,Nothing}

Which library reads a compression or image format ("gzip", "bzip2", "xz", "zstd", "lz4", "lzip",
"compress", "jpeg", "png", "webp", "gif", "tiff", "jxl", "avif", "audio", "video", "http", "libarchive", "feed",
"feed_http"), or `nothing`
when this build cannot.

```jldoctest
julia> ShardFeed.feature("rar") === nothing
true
```
"""
function feature(name::AbstractString)
    load()
    text = _checked(String(name), "name of a feature")
    return GC.@preserve text _text(shf_feature(pointer(text)))
end
