# Tokenizers: tokens that a Julia function makes of texts, for packed rows.
#
# The library asks for those of many texts at once, by requests as an opener is asked; the answer has
# all of them one after another. Where one text fails the library asks again for fewer, until it knows
# which ones are bad.

# Copies: the library may use the memory for the next request as soon as something yields.
_texts_of(request::NativeRequest) =
    String[_text(unsafe_load(request.texts, n).text) for n in 1:request.size]

function _make_tokens(tokenizer, texts::Vector{String})
    tokens = Int32[]
    counts = UInt64[]
    try
        for text in texts
            before = length(tokens)
            append_tokens!(tokens, Base.invokelatest(tokenizer, text))
            push!(counts, length(tokens) - before)
        end
    catch error
        error isa InterruptException && rethrow()
        return _token_failure(error)
    end
    return Answer(OK, 0, "", tokens, sizeof(tokens), nothing, 0, counts)
end

append_tokens!(tokens::Vector{Int32}, given::AbstractVector{<:Integer}) = append!(tokens, given)
function append_tokens!(::Vector{Int32}, given)
    throw(ArgumentError("it gave a $(typeof(given)), and not a vector of whole numbers"))
end

# Whatever the function throws is a fault of the text, unless it says otherwise itself.
function _token_failure(error)
    code = error isa ShardFeedError ? error.code : error isa OutOfMemoryError ? E_NOMEM : E_FORMAT
    text = error isa ShardFeedError ? error.message : "the tokenizer: " * sprint(showerror, error)
    return Answer(code, 0, replace(text, '\0' => "\\0"), nothing, 0, nothing, 0)
end
