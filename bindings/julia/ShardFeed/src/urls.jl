# Lists of URLs.

const URLs = Union{AbstractString,AbstractVector{<:AbstractString},Tuple{Vararg{AbstractString}}}

url_list(url::AbstractString) = String[String(url)]
url_list(urls) = String[String(url) for url in urls]

# Calls f with the addresses of the texts and their number.
function with_texts(f, texts::Vector{String})
    foreach(text -> _checked(text, "URL"), texts)
    return GC.@preserve texts f(Ptr{UInt8}[pointer(text) for text in texts], length(texts))
end

function _add_url(context::Ptr{Cvoid}, url::Ptr{UInt8}, size::Csize_t)
    push!(unsafe_pointer_to_objref(context)::Vector{String}, unsafe_string(url, size))
    return Int32(0)
end

# As in native.jl: what is compiled must not throw.
_url_receiver() = @cfunction(_add_url, Int32, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t))

"""
    ShardFeed.expand_urls(urls; options...) -> Vector{String}

The shards that URLs stand for: braces, `::`, `\${NAME}`, `@FILE`, `~/` and shell patterns expanded.

```jldoctest
julia> ShardFeed.expand_urls("s-{08..10}.tar::last.tar")
4-element Array{String,1}:
 "s-08.tar"
 "s-09.tar"
 "s-10.tar"
 "last.tar"
```
"""
function expand_urls(urls::URLs; options...)
    found = String[]
    error = new_error()
    with_options("stream", options) do native
        code = with_texts(url_list(urls)) do pointers, count
            interruptible(native) do
                GC.@preserve found shf_expand_urls(
                    pointers, count, native, _url_receiver(), pointer_from_objref(found), error,
                )
            end
        end
        _check(code, error)
    end
    return found
end

# The shards that an error may be about; none where that is unknown. A list may be a FIFO, from
# which nothing comes a second time.
function _shards(urls::Vector{String}, options)
    given = [filter(p -> p[1] === :expand, collect(options))..., :timeout => "1s"]
    try
        return expand_urls(urls; given...)
    catch error
        error isa InterruptException && rethrow()
        return String[]
    end
end
