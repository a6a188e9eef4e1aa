# The functions of this package against those of the header, which is the manual.

const HEADER = get(ENV, "SHARDFEED_HEADER", joinpath(@__DIR__, "../../../../include/shardfeed.h"))

# What is not bound, and why.
const NOT_BOUND = Dict(
    "shf_options_set_all" => "options are keywords",
    "shf_options_set_allocator" => "release would run Julia code inside finalizers",
    "shf_options_set_source" => "its functions would run Julia code on threads of the library: shf_options_set_requests",
    "shf_options_set_tokenizer" => "its functions would run Julia code on threads of the library: shf_options_set_tokenizer_requests",
    "shf_tokens_add" => "as shf_options_set_tokenizer",
    "shf_stream_next" => "shf_stream_next_block delivers the same samples, many in a call",
    "shf_block_ref" => "each block has one owner",
    "shf_block_columns" => "samples are read through shf_sample_*: a call costs nanoseconds here",
    "shf_block_keys" => "as shf_block_columns",
    "shf_block_buffer" => "as shf_block_columns",
    "shf_block_schema" => "as shf_block_columns",
    "shf_block_url" => "as shf_block_columns",
    "shf_batch_find" => "the names of the columns are at hand",
    "shf_batch_key" => "batch[\"__key__\"][row]",
    "shf_batch_dlpack" => "columns are Arrays over the memory already",
    "shf_batch_arrow" => "as shf_batch_dlpack",
    "shf_cache_list" => "the command `shardfeed cache` looks after caches",
    "shf_cache_verify" => "as shf_cache_list",
    "shf_cache_clear" => "as shf_cache_list",
    "shf_cache_report_free" => "as shf_cache_list",
    "shf_cache_count" => "as shf_cache_list",
    "shf_cache_text" => "as shf_cache_list",
    "shf_cache_number" => "as shf_cache_list",
    "shf_feed_open" => "the command `shardfeed feed` is the server; streams open feed://",
    "shf_feed_make_keys" => "as shf_feed_open",
    "shf_feed_run" => "as shf_feed_open",
    "shf_feed_address" => "as shf_feed_open",
    "shf_feed_drain" => "as shf_feed_open",
    "shf_feed_stop" => "as shf_feed_open",
    "shf_feed_count" => "as shf_feed_open",
    "shf_feed_http" => "as shf_feed_open",
    "shf_feed_http_address" => "as shf_feed_open",
    "shf_feed_close" => "as shf_feed_open",
    "shf_writer_field" => "bytes stay as they are while a sample is written: shf_writer_field_borrowed",
)

# name => (result, types of the arguments), of all functions declared in the header.
function header_functions()
    text = replace(read(HEADER, String), r"/\*.*?\*/"s => "")
    pattern = r"^(\w[\w ]*?[ *]+)(shf_\w+)\(([^;()]*)\);"ms
    found = Dict{String,Tuple{String,Vector{String}}}()
    for declared in eachmatch(pattern, text)
        result, name, arguments = declared.captures
        startswith(strip(result), "typedef") && continue
        types = strip(arguments) == "void" ? String[] : String[_c_type(a) for a in split(arguments, ',')]
        found[name] = (_c_type(result * " x"), types)
    end
    return found
end

_c_type(argument) =
    replace(strip(replace(strip(replace(argument, r"\bconst\b" => "")), r"\w+$" => "")), r"\s+" => "")

# The Julia types that may stand for a C type.
function stands_for(c::String, julia)
    c == "void" && return julia === Cvoid
    fits = Dict("int32_t" => Int32, "uint32_t" => UInt32, "uint64_t" => UInt64, "size_t" => Csize_t,
                "double" => Float64)
    haskey(fits, c) && return julia === fits[c]
    julia <: Ptr || c in ("shf_log_fn", "shf_skip_fn", "shf_url_fn") && return false
    pointed = Dict("char*" => UInt8, "uint8_t*" => UInt8, "uint64_t*" => UInt64, "void*" => missing,
                   "shf_error*" => UInt8, "shf_bytes*" => ShardFeed.NativeBytes,
                   "shf_request*" => ShardFeed.NativeRequest, "shf_answer*" => ShardFeed.NativeAnswer,
                   "shf_skip*" => ShardFeed.NativeSkip,
                   "shf_array*" => ShardFeed.NativeArray, "char**" => Ptr{UInt8}, "void**" => Ptr{UInt8},
                   "double*" => Float64, "size_t*" => Csize_t)
    wanted = get(pointed, c) do
        endswith(c, "**") ? Ptr{Cvoid} : Cvoid # handles, and functions
    end
    return wanted === missing || eltype(julia) === wanted
end

@testset "every function of the header is bound, or said not to be" begin
    header = header_functions()
    bound = Set(string(name) for (name, _) in ShardFeed._FUNCTIONS)
    @test length(header) > 60
    for name in keys(header)
        xor(name in bound, haskey(NOT_BOUND, name)) || println("bound and listed, or neither: ", name)
        @test xor(name in bound, haskey(NOT_BOUND, name))
    end
    @test isempty(setdiff(bound, keys(header)))
    @test isempty(setdiff(keys(NOT_BOUND), keys(header)))
end

@testset "declarations have the types of the header" begin
    header = header_functions()
    source = read(joinpath(@__DIR__, "../src/native.jl"), String)
    declared = 0
    for line in eachmatch(r"^@native (?:blocking )?(shf_\w+)\((.*)\)::(\S+)$"m, source)
        name, arguments, result = line.captures
        declared += 1
        wanted_result, wanted = header[name]
        types = String[split(a, "::")[2] for a in split(arguments, ", "; keepempty=false)]
        evaluate(text) = Core.eval(ShardFeed, Meta.parse(text))
        good = length(types) == length(wanted) && stands_for(wanted_result, evaluate(result)) &&
               all(stands_for(c, evaluate(j)) for (c, j) in zip(wanted, types))
        good || println(name, ": ", types, " -> ", result, " for ", wanted, " -> ", wanted_result)
        @test good
    end
    @test declared == length(ShardFeed._FUNCTIONS)
    @test sizeof(ShardFeed.NativeBytes) == 16
    @test sizeof(ShardFeed.NativeArray) == 112
    @test sizeof(ShardFeed.NativeText) == 48
    @test sizeof(ShardFeed.NativeRequest) == 80
    @test sizeof(ShardFeed.NativeAnswer) == 64
end

@testset "codes and numbers are those of the header" begin
    text = read(HEADER, String)
    number(name) = parse(Int, match(Regex("\\b$name = (-?\\d+)"), text).captures[1])
    @test number("SHF_END") == ShardFeed.END
    @test number("SHF_E_FORMAT") == ShardFeed.E_FORMAT
    @test number("SHF_E_IO") == ShardFeed.E_IO
    @test number("SHF_E_NOMEM") == ShardFeed.E_NOMEM
    @test number("SHF_REQUEST_SKIP") == ShardFeed._SKIP
    @test number("SHF_REQUEST_TOKENIZE") == ShardFeed._TOKENIZE
    @test number("SHF_REQUEST_DONE") == ShardFeed._DONE
    @test number("SHF_SOURCE_ONE_THREAD") == ShardFeed._ONE_THREAD
    @test number("SHF_E_CANCELLED") == ShardFeed.E_CANCELLED
    @test number("SHF_E_TIMEOUT") == ShardFeed.E_TIMEOUT
    @test number("SHF_E_USAGE") == ShardFeed.E_USAGE
    @test number("SHF_E_NOT_FOUND") == ShardFeed.E_NOT_FOUND
    for (property, value) in pairs(ShardFeed._CONSUMER)
        @test number("SHF_PLAN_" * uppercase(string(property))) == value
    end
    for (property, value) in pairs(ShardFeed._MEMBER)
        @test number("SHF_MEMBER_" * uppercase(string(property))) == value
    end
    for (text, value) in pairs(ShardFeed._HEADER_TEXT)
        @test number("SHF_MEMBER_" * uppercase(string(text))) == value
    end
    for (what, value) in (pairs(ShardFeed._SHARD)..., pairs(ShardFeed._SHARD_TEXT)...)
        @test number("SHF_SHARD_" * uppercase(string(what))) == value
    end
    @test number("SHF_SAMPLE_OFFSET") == ShardFeed._POSITIONS.offset
    dtypes = ["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
              "FLOAT16", "FLOAT32", "FLOAT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"]
    @test [number("SHF_DTYPE_$dtype") + 1 for dtype in dtypes] == 1:length(ShardFeed._DTYPES)
    @test occursin("SHF_VERSION_MAJOR = $(ShardFeed.library_version().major),", text)
end

@testset "calls that let garbage be collected are written as Julia 1.12 has it" begin
    made = ShardFeed._gc_safe_call(:(address[]), [:a, :b], [:(Ptr{UInt8}), :Csize_t], :Int32)
    written = Meta.parse("@ccall gc_safe=true \$(address[])(a::Ptr{UInt8}, b::Csize_t)::Int32")
    @test made.args[[1, 3, 4]] == written.args[[1, 3, 4]] && made.head === written.head
    # The same without gc_safe, which older versions do not know, calls the function.
    call = ShardFeed._gc_safe_call(:(address_of_shf_error_name[]), [:code], [:Int32], :(Ptr{UInt8})).args[4]
    name = Core.eval(ShardFeed, :(code -> $(Expr(:macrocall, Symbol("@ccall"), nothing, call))))
    @test unsafe_string(Base.invokelatest(name, Int32(-2))) == "TRUNCATED"
end

@testset "methods" begin
    @test isempty(detect_ambiguities(ShardFeed))
    @test isempty(detect_unbound_args(ShardFeed))
end
