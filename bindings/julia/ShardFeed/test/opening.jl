# What hangs while it is opened, or written, ends: by Ctrl-C, and by its time.

# A FIFO that nobody writes into, in the folder of the test.
make_fifo() = run(`mkfifo fifo`)

# Every opening that may hang, one after another, until Ctrl-C ends it. A word in each line.
const HANGING = raw"""
using ShardFeed
function ends(name, call)
    println(name)
    flush(stdout)
    try
        call()
        println("continued")
    catch error
        println(error isa ShardFeedError ? error.class : typeof(error))
    end
    flush(stdout)
end
const sleeping = "pipe:sleep 1000"

# Everything once before: what is compiled meanwhile is nothing for Ctrl-C.
close(Archive("images.zip"))
close(Dataset("train-000.tar"; log=nothing))
ShardFeed.open(first, "train-000.tar"; timeout=10)
ShardFeed.open(s -> first(batches(s)), "train-000.tar"; batch=2)
ShardFeed.Members(members -> read(first(members)), "train-000.tar")
ShardFeed.plan(ShardFeed.expand_urls("train-000.tar"))
ShardFeed.export_index("train-000.tar", :wids, "before.json")
ShardFeed.import_index(nothing, :wids, "before.json")
ShardFeed.Writer(writer -> write(writer, "a", "txt" => "1"), "before.tar")

isempty(ARGS) || Base.exit_on_sigint(false)
ends("archive", () -> Archive("fifo"))
ends("command", () -> Archive(sleeping))
ends("dataset", () -> Dataset("@fifo"))
ends("stream", () -> ShardFeed.open("@fifo"))
ends("stream with a timeout", () -> ShardFeed.open("@fifo"; timeout=1000))
ends("plan", () -> ShardFeed.plan("@fifo"))
ends("list", () -> ShardFeed.expand_urls("@fifo"))
ends("export", () -> ShardFeed.export_index("@fifo", :wids, "a.json"))
ends("import", () -> ShardFeed.import_index(nothing, :wids, "fifo"))
ends("samples", () -> ShardFeed.open(first, sleeping))
ends("batches", () -> ShardFeed.open(s -> first(batches(s)), sleeping; batch=2))
ends("members", () -> ShardFeed.Members(first, sleeping))
ends("bytes", () -> ShardFeed.Members(members -> read(first(members)), "pipe:head -c 512 train-000.tar; sleep 1000"))
# Nobody reads what it writes.
function write_to_nobody()
    out = stdout
    redirect_stdout()
    try
        ShardFeed.Writer(writer -> write(writer, "a", "bin" => zeros(UInt8, 4 << 20)), "-")
    finally
        redirect_stdout(out)
    end
end
ends("writer", write_to_nobody)
# What is stored before the interrupt comes is not lost.
stored = Ref(0)
function store_late()
    while !ShardFeed._is_interrupted()
        Base.Libc.systemsleep(0.01)
    end
    stored[] = 1
end
ends("late", () -> ShardFeed.without_interrupts(store_late))
println(length(Archive("images.zip")), " members, ", stored[], " stored")
"""

# Runs f with another Julia that opens what hangs; it is killed after a minute.
function with_hanging(f, arguments...)
    julia = joinpath(Sys.BINDIR, Base.julia_exename())
    write("hanging.jl", HANGING)
    flags = `--startup-file=no --compile=min --compiled-modules=no`
    process = Base.open(pipeline(`$julia $flags hanging.jl $arguments`; stderr="stderr.txt"))
    guard = Timer(_ -> kill(process, Base.SIGKILL), 60)
    try
        return f(process)
    finally
        close(guard)
        kill(process, Base.SIGKILL)
        wait(process)
    end
end

# Sends Ctrl-C when the library waits.
function interrupt(process)
    sleep(0.3)
    kill(process, Base.SIGINT)
    return time()
end

@testset "Ctrl-C ends what is opened" begin
    with_files() do
        make_fifo()
        with_hanging("continue") do process
            count = 0
            while true
                name = readline(process)
                if isempty(name) || endswith(name, "stored")
                    @test name == "2 members, 1 stored"
                    break
                end
                sent = interrupt(process)
                caught = readline(process)
                caught == "InterruptException" || println("in ", name, ": ", caught)
                @test caught == "InterruptException"
                @test time() - sent < 3
                count += 1
            end
            @test count == 15
            wait(process)
            @test success(process)
        end
        @test !isfile("a.json")
    end
end

@testset "Ctrl-C ends a script that opens something" begin
    with_files() do
        make_fifo()
        with_hanging() do process
            @test readline(process) == "archive"
            sent = interrupt(process)
            @test readline(process) == "" # it catches nothing: a script ends by Ctrl-C
            wait(process)
            @test !success(process) && time() - sent < 5
        end
    end
end

@testset "an opening that takes too long" begin
    with_files() do
        make_fifo()
        for open_it in (Archive, Dataset, ShardFeed.open, ShardFeed.plan, ShardFeed.expand_urls)
            started = time()
            url = open_it === Archive ? "fifo" : "@fifo"
            error = shf_error(() -> open_it(url; timeout=0.2))
            @test error isa ShardFeedError && error.class === :TIMEOUT && error.shard === nothing
            error = shf_error(() -> open_it(url; pipe_timeout=0.2))
            @test error isa ShardFeedError && error.class === :IO && error.os_error == Base.Libc.ETIMEDOUT
            @test time() - started < 5
        end
    end
end
