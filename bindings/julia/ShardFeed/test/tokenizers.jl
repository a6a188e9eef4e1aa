# Tokenizers: tokens that a Julia function makes of texts, packed in rows.

# Document n: numbers, some none at all, some longer than a row of 16.
document(n) = Int32[1000n + i for i in 1:mod(7n, 45)]
const DOCUMENTS = 0:29
words(text) = [parse(Int, word) for word in split(text)]

# Two shards of the documents, as text and as the tokens of it; some have another text.
function write_documents(; bad=())
    for (shard, numbers) in (("a", 0:14), ("b", 15:29))
        members = []
        for n in numbers
            key = lpad(string(n), 3, '0')
            push!(members, "$key.txt" => (n in bad ? "1 2 x 4" : join(document(n), " ")))
            push!(members, "$key.npy" => npy(document(n), "<i4"))
        end
        write_tar("docs-$shard.tar", members)
    end
    return "docs-{a..b}.tar"
end

# The tokens, documents and positions of each batch.
rows_of(stream, field) =
    [(copy(b[field]), copy(b["__document__"]), copy(b["__position__"])) for b in batches(stream)]
packed(url, field; options...) = ShardFeed.open(stream -> rows_of(stream, field), url;
                                                batch=2, pack=16, decode=field, options...)
# The tokens without what fills a row.
tokens_of(batches) = reduce(vcat, [tokens[places.>=0] for (tokens, _, places) in batches]; init=Int32[])
all_tokens(numbers) = reduce(vcat, document.(numbers))

# What was served ends with the streams.
nothing_is_served() =
    becomes(() -> isempty(ShardFeed._servers) || (GC.gc(); ShardFeed.close_abandoned(); false))

@testset "tokens of texts are packed as those in npy" begin
    with_files() do
        url = write_documents()
        wanted = packed(url, "npy")
        @test length(wanted) > 10 && tokens_of(wanted) == all_tokens(DOCUMENTS)
        threads = Set{Int}()
        noted(text) = (push!(threads, Threads.threadid()); words(text))
        found = packed(url, "txt"; tokenizer=noted, decode_threads=3)
        @test found == wanted && eltype(found[1][1]) === Int32
        @test threads == Set(Threads.threadid()) # never one of the library
        waiting(text) = (sleep(0.001); Int16.(mod.(words(text), 1000)))
        @test tokens_of(packed(url, "txt"; tokenizer=waiting)) == mod.(tokens_of(wanted), 1000)
        shuffled = (shuffle=8, seed=5, pack_window=6, threads=2, epochs=2)
        @test packed(url, "txt"; tokenizer=words, shuffled...) == packed(url, "npy"; shuffled...)
        # With an opener, which the same tasks serve.
        opener(url) = read(replace(url, "db://" => ""))
        @test packed("db://" * url, "txt"; tokenizer=words, opener=opener) == wanted
        @test nothing_is_served()
    end
end

@testset "a mix takes a tokenizer" begin
    with_files() do
        write_documents()
        parts() = [ShardFeed.open("docs-a.tar"), ShardFeed.open("docs-b.tar")]
        mixed(field; options...) = ShardFeed.mix(stream -> rows_of(stream, field), parts(); batch=2, pack=16,
                                                 decode=field, seed=1, until="all", options...)
        @test mixed("txt"; tokenizer=words) == mixed("npy")
        stream = ShardFeed.open("docs-a.tar")
        @test shf_error(() -> ShardFeed.mix([stream, stream]; batch=2, pack=16, decode="txt",
                                            tokenizer=words)).class === :USAGE
        close(stream)
        @test nothing_is_served()
    end
end

@testset "a state resumes in the middle of a document" begin
    with_files() do
        url = write_documents()
        wanted = packed(url, "txt"; tokenizer=words)
        options = (batch=2, pack=16, decode="txt", tokenizer=words)
        in_the_middle = 0
        for given in 1:3:length(wanted)-1
            state = ShardFeed.open(url; options...) do stream
                foreach(identity, Iterators.take(batches(stream), given))
                ShardFeed.save(stream)
            end
            rest = ShardFeed.open(url; options...) do stream
                ShardFeed.restore!(stream, state)
                rows_of(stream, "txt")
            end
            @test rest == wanted[given+1:end]
            in_the_middle += rest[1][3][1] > 0
        end
        @test in_the_middle > 1
    end
end

@testset "tokenizers that fail" begin
    with_files() do
        url = write_documents(bad=(11, 20))
        found = shf_error(() -> packed(url, "txt"; tokenizer=words))
        @test found.class === :FORMAT && found.shard == "docs-a.tar" && found.member == "011.txt"
        @test occursin("the tokenizer: ArgumentError", found.message) && occursin("\"x\"", found.message)
        skipped = String[]
        rest = packed(url, "txt"; tokenizer=words, on_error="skip_sample", log=nothing,
                      on_skip=skip -> push!(skipped, skip.key))
        @test tokens_of(rest) == all_tokens(setdiff(DOCUMENTS, (11, 20)))
        @test skipped == ["011", "020"]

        url = write_documents()
        failing(f, options...) = shf_error(() -> packed(url, "txt"; tokenizer=f, options...))
        for (f, said) in ((text -> 5, "it gave a Int64"), (text -> [1.0], "it gave a Array{Float64,1}"),
                          (text -> [2^40], "InexactError"), (text -> [missing], "and not a vector of whole numbers"))
            found = failing(f)
            @test found.class === :FORMAT
            @test occursin(said, replace(found.message, "Vector{Float64}" => "Array{Float64,1}"))
        end
        # What the function itself says of it stays; no class but that of a bad sample is skipped.
        refused(text) = throw(ShardFeedError(Int32(-19), "not today"))
        found = failing(refused, :on_error => "skip_sample")
        @test found.class === :USAGE && occursin("not today", found.message)
        @test failing(text -> throw(OutOfMemoryError())).class === :NOMEM

        @test shf_error(() -> ShardFeed.open(url; tokenizer="words")).class === :USAGE
        found = shf_error(() -> ShardFeed.open(url; batch=2, decode="txt", tokenizer=words))
        @test found.class === :USAGE && occursin("there is no pack", found.message)
        @test shf_error(() -> packed(url, "txt"; tokenizer=words, nonsense=1)).class === :USAGE
        @test nothing_is_served()
    end
end

@testset "a stream is closed while texts wait for their tokens" begin
    with_files() do
        url = write_documents()
        released = Base.Event()
        stream = ShardFeed.open(url; batch=2, pack=16, decode="txt", decode_threads=2, timeout=0.2,
                                tokenizer=text -> (wait(released); words(text)))
        @test shf_error(() -> first(batches(stream))).class === :TIMEOUT
        @test isopen(stream)
        close(stream)
        @test !isopen(stream)
        notify(released)
        @test nothing_is_served()
    end
end
