# Columns of batches: arrays over the memory of the library, in Julia's order of dimensions.

# By the header's SHF_DTYPE_*. The last one is bfloat16, for which Julia has no type of its own: the
# array has its bits.
const _DTYPES = (Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32,
                 Float64, ComplexF32, ComplexF64, UInt16)

const _KINDS = (:array, :bytes, :text, :json, :msgpack)

# ---- Arrays over memory of the library ----------------------------------------------------------

# What is alive as long as an array or anything that shares its memory (reshape, view) is.
@static if isdefined(Core, :Memory) # Julia 1.11 and later
    _root(array::Array) = ismutable(array.ref.mem) ? array.ref.mem : array
else
    _root(array::Array) = array
end

# An Array over `count` elements of a batch, which lives until the Array is collected.
function _wrap(::Type{T}, data::Ptr, dimensions::NTuple{N,Int}, batch::Pointer) where {T,N}
    (data == C_NULL || prod(dimensions) == 0) && return Array{T,N}(undef, dimensions)
    array = unsafe_wrap(Array, Ptr{T}(data), dimensions; own=false)
    held = sizeof(array)
    shf_batch_ref(batch)
    Threads.atomic_add!(_held, held)
    finalizer(_root(array)) do _
        Threads.atomic_sub!(_held, held)
        shf_batch_unref(batch)
    end
    return array
end

_numbers(data::Ptr{Int64}, count) =
    copyto!(Vector{Int64}(undef, count), unsafe_wrap(Array, data, count; own=false))

# ---- Ragged columns ------------------------------------------------------------------------------

"""
    RaggedColumn <: AbstractVector

A column whose rows differ in shape: `column[i]` is row `i`, an array over the memory of the batch.
`column.values` has the elements of all rows, one row after another, `column.offsets` where each
starts (from 0).
"""
struct RaggedColumn{T,N,R} <: AbstractVector{R}
    values::Vector{T}
    offsets::Vector{Int64}
    sizes::Vector{NTuple{N,Int}} # of the rows; empty when N is 1
end

function RaggedColumn(values::Vector{T}, offsets, sizes::Vector{NTuple{N,Int}}) where {T,N}
    row = _row(values, 1:0, ntuple(_ -> 0, N))
    return RaggedColumn{T,N,typeof(row)}(values, offsets, sizes)
end

_row(values, range, ::NTuple{1,Int}) = view(values, range)
_row(values, range, size::Tuple) = reshape(view(values, range), size)

Base.size(column::RaggedColumn) = (length(column.offsets) - 1,)
function Base.getindex(column::RaggedColumn{T,N}, i::Int) where {T,N}
    checkbounds(column, i)
    range = column.offsets[i]+1:column.offsets[i+1]
    return _row(column.values, range, N == 1 ? (length(range),) : column.sizes[i])
end

"""
    TextColumn <: AbstractVector{String}

The texts of a column, made from `column.values` (UTF-8 of all rows) when they are asked for.
"""
struct TextColumn <: AbstractVector{String}
    values::Vector{UInt8}
    offsets::Vector{Int64}
end
Base.size(column::TextColumn) = (length(column.offsets) - 1,)
function Base.getindex(column::TextColumn, i::Int)
    checkbounds(column, i)
    start, stop = column.offsets[i], column.offsets[i+1]
    values = column.values
    return start == stop ? "" : GC.@preserve values unsafe_string(pointer(values, start + 1), stop - start)
end

# ---- Columns -------------------------------------------------------------------------------------

function _column(native::NativeArray, rows::Int, batch::Pointer)
    kind = _KINDS[native.kind+1]
    if native.offsets != C_NULL
        offsets = _numbers(native.offsets, rows + 1)
        T = _DTYPES[native.dtype+1]
        values = _wrap(T, native.data, (Int(offsets[end]),), batch)
        kind in (:text, :json) && return TextColumn(values, offsets)
        return RaggedColumn(values, offsets, _row_sizes(native, rows))
    end
    dimensions = Tuple(Int(native.shape[i]) for i in native.ndim:-1:1)
    return _wrap(_DTYPES[native.dtype+1], native.data, dimensions, batch)
end

# The size of each row, in Julia's order of dimensions.
function _row_sizes(native::NativeArray, rows::Int)
    n = Int(native.row_ndim)
    (native.shapes == C_NULL || n == 1) && native.offsets != C_NULL && return NTuple{1,Int}[]
    shapes = _numbers(native.shapes, rows * n)
    return NTuple{n,Int}[Tuple(shapes[n*row-k] for k in 0:n-1) for row in 1:rows]
end
