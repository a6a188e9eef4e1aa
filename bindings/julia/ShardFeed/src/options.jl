# Options by name: the library's table is read, never copied.

const _PROPERTIES = (:name, :type, :default, :range, :openers, :help, :group)

"""
    ShardFeed.options() -> Vector of NamedTuples

All keywords that [`ShardFeed.open`](@ref), [`Dataset`](@ref), [`Archive`](@ref) and
[`ShardFeed.Writer`](@ref) take, as the library lists them: `name`, `type`, `default`, `range`,
`openers` (who takes it), `help` and `group`.

```jldoctest
julia> first(o for o in ShardFeed.options() if o.name == "epochs").help
"epochs until the end; 0: no end"
```
"""
options() = copy(_option_table())

# Read once, under _loading, and stored in one step: Ctrl-C may come at any time.
const _table = Ref{Vector{NamedTuple{_PROPERTIES,NTuple{7,String}}}}()

function _option_table()
    load()
    return lock(_loading) do
        isassigned(_table) || (_table[] = _read_table())
        _table[]
    end
end

function _read_table()
    described = NamedTuple{_PROPERTIES,NTuple{7,String}}[]
    while true
        index = length(described)
        texts = [_text(shf_option_describe(index, Int32(what))) for what in 0:6]
        texts[1] === nothing && return described
        push!(described, NamedTuple{_PROPERTIES}(Tuple(String.(texts))))
    end
end

# The text that the library takes: true is "true", 1000 is "1000", ["jpg", "cls"] is "jpg,cls".
_option_text(value::Bool) = value ? "true" : "false"
_option_text(value::Integer) = string(value)
_option_text(value::Union{AbstractString,Symbol}) = String(value)
_option_text(value::Union{AbstractVector,Tuple}) = join(_option_text.(value), ",")
function _option_text(value::Real)
    isfinite(value) && abs(value) < 1e9 || return string(value)
    whole = floor(Int64, value)
    billionths = round(Int64, (value - whole) * 1e9)
    billionths == 1_000_000_000 && return string(whole + 1)
    return billionths == 0 ? string(whole) : string(whole, '.', lpad(string(billionths), 9, '0'))
end
_option_text(value) = throw(_usage("an option of type $(typeof(value)): Bool, Integer, Real, " *
                                   "AbstractString, Symbol or a vector of these expected"))

# Calls f with a shf_options in which the keywords `given` of `opener` are set.
function with_options(f, opener::String, given, server=nothing)
    load()
    native = shf_options_new()
    native == C_NULL && throw(OutOfMemoryError())
    try
        set_server(native, server) # first: whatever fails now ends it
        for (name, value) in given
            set_option(native, opener, String(name), _option_text(value))
        end
        return f(native)
    finally
        shf_options_free(native)
    end
end

function set_option(native::Pointer, opener::String, name::String, value::String)
    _checked(name, "option")
    _checked(value, "option $name: the value")
    error = new_error()
    code = GC.@preserve name value shf_options_set(native, pointer(name), pointer(value), error)
    _check(code, error)
    # The library passes over options that an opener does not take: here they are mistakes.
    option = first(o for o in _option_table() if o.name == name)
    opener in split(option.openers) ||
        throw(_usage("\"$name\" is an option of $(option.openers) only"))
    return
end

# Seconds of a duration such as 1.5, "30s" or "200ms"; 0: no limit.
function _seconds(timeout)
    timeout === 0 && return 0.0
    return with_options("stream", [:timeout => timeout]) do native
        value = option_value(native, "timeout") # "1500000000ns"
        parse(Int64, value[1:end-2]) / 1e9
    end
end

# The value of an option, as a text that is the same for equal values.
function option_value(native::Pointer, name::String)
    error = new_error()
    value = Ref(NativeBytes())
    _check(GC.@preserve(name, shf_options_get(native, pointer(name), value, error)), error)
    return _text(value[])
end
