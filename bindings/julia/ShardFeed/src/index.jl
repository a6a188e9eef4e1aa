# Index files, our own and those of other tools.

const _INDEX_FORMATS = Dict(:dali_1_0 => 0, :dali_1_1 => 1, :dali_1_2 => 2, :energon => 3, :wids => 4)

_index_format(format) = Int32(get(_INDEX_FORMATS, Symbol(format)) do
    known = join(sort!(string.(keys(_INDEX_FORMATS))), ", ")
    throw(_usage("unknown format of an index \"$format\"; help: one of $known"))
end)

"""
    ShardFeed.build_index(url; options...)

Makes the index of the tar at `url` and saves it where a [`Dataset`](@ref) looks for it.

```jldoctest
julia> ShardFeed.build_index("train-000.tar"); isfile("train-000.tar.sfidx")
true
```
"""
function build_index(url::AbstractString; options...)
    text = _checked(String(url), "URL")
    error = new_error()
    with_options("dataset", options) do native
        code = interruptible(native) do
            GC.@preserve text shf_index_build(pointer(text), native, error)
        end
        _check(code, error, () -> [text])
    end
    return
end

"""
    ShardFeed.export_index(urls, format, path; options...)

Writes the index that another tool needs into the file `path`: `:dali_1_0`, `:dali_1_1`, `:dali_1_2`,
`:energon` or `:wids`.

```jldoctest
julia> ShardFeed.export_index("train-000.tar", :dali_1_2, "train-000.idx"); filesize("train-000.idx") > 0
true
```
"""
function export_index(urls::URLs, format, path::AbstractString; options...)
    number = _index_format(format)
    file = _checked(String(path), "path")
    error = new_error()
    listed = url_list(urls)
    with_options("dataset", options) do native
        code = with_texts(listed) do pointers, count
            interruptible(native) do
                GC.@preserve file shf_index_export(
                    pointers, count, number, pointer(file), native, error,
                )
            end
        end
        _check(code, error, () -> _shards(listed, options))
    end
    return
end

"""
    ShardFeed.import_index(url, format, path; options...)

Takes over the index of another tool in the file `path`: makes the index of the tar at `url` and saves
it when the other one says the same of every sample. An index of wids names its shards: `url` is
`nothing`.
"""
function import_index(url::Union{AbstractString,Nothing}, format, path::AbstractString; options...)
    number = _index_format(format)
    file = _checked(String(path), "path")
    text = url === nothing ? "" : _checked(String(url), "URL")
    error = new_error()
    with_options("dataset", options) do native
        code = interruptible(native) do
            GC.@preserve file text shf_index_import(
                url === nothing ? Ptr{UInt8}(C_NULL) : pointer(text), number, pointer(file), native,
                error,
            )
        end
        _check(code, error, () -> [text])
    end
    return
end
