# Runs the examples of the docstrings (```jldoctest blocks), and of README.md and docs/julia.md (```julia blocks, and after
# some what they print) in a folder with the example files.


# The steps of an example: code after "julia> ", and what it is to print.
function example_steps(block::AbstractString)
    steps = Tuple{String,String}[]
    for line in split(block, '\n')
        if startswith(line, "julia> ")
            push!(steps, (line[8:end], ""))
        elseif !isempty(steps) && startswith(line, "       ") && isempty(steps[end][2])
            steps[end] = (steps[end][1] * "\n" * line[8:end], "")
        elseif !isempty(steps)
            steps[end] = (steps[end][1], steps[end][2] * line * "\n")
        end
    end
    return [(code, String(rstrip(output))) for (code, output) in steps]
end

# Julia has changed how it prints these since 1.5.
normalized(text) = replace(replace(text, r"Array\{(\w+),1\}" => s"Vector{\1}"), r"\s+$"m => "")

# What the step prints, as at the prompt.
function run_step(place::Module, code::String)
    printed = tempname()
    value = Base.open(printed, "w") do io
        redirect_stdout(io) do
            Base.include_string(place, code)
        end
    end
    shown = read(printed, String)
    if value !== nothing && !endswith(rstrip(code), ';')
        shown *= repr(MIME("text/plain"), value; context=:limit => true)
    end
    return String(rstrip(shown))
end

function run_example(name, block)
    place = Module(:Example)
    Core.eval(place, :(using ShardFeed))
    for (code, wanted) in example_steps(block)
        got = run_step(place, code)
        normalized(got) == normalized(wanted) || println("in $name: $code\n  wanted: $wanted\n  got: $got")
        @test normalized(got) == normalized(wanted)
    end
end

function docstrings(m::Module)
    found = Pair{String,String}[]
    for (binding, documents) in Base.Docs.meta(m), (_, text) in documents.docs
        push!(found, string(binding) => join(text.text))
    end
    return sort!(found)
end

@testset "examples of the docstrings" begin
    with_files() do
        examples = 0
        for (name, text) in docstrings(ShardFeed)
            for found in eachmatch(r"```jldoctest\n(.*?)```"s, text)
                examples += 1
                run_example(name, found.captures[1])
            end
        end
        @test examples >= 20
    end
end

# The package by itself has no docs folder.
const PAGES = (("../README.md", 1), ("../../../../docs/julia.md", 6), ("../../../../docs/members.md", 1),
               ("../../../../docs/writing.md", 1))

@testset "examples of $page" for (page, examples) in PAGES
    path = joinpath(@__DIR__, page)
    startswith(page, "../README") || isfile(path) || continue
    with_files() do
        place = Module(:Page)
        Core.eval(place, :(using ShardFeed))
        blocks = collect(eachmatch(r"```julia\n(.*?)```(?:\n\n```text\n(.*?)```)?"s, read(path, String)))
        @test length(blocks) >= examples
        for block in blocks
            code, wanted = block.captures
            got = run_step(place, code * "nothing")
            @test got == rstrip(something(wanted, ""))
        end
    end
end

@testset "what is exported has a docstring" begin
    documented = Set(string(binding) for binding in keys(Base.Docs.meta(ShardFeed)))
    for name in names(ShardFeed)
        name === :ShardFeed && continue
        @test "ShardFeed.$name" in documented
    end
end
