# Members in sequence.

@testset "members in sequence" begin
    with_files() do
        long = repeat("0123456789", 20000)
        written = ["a.txt" => "first", "a.txt" => "second", "e" => "", "long.bin" => long]
        write_tar("x.tar", written)
        for url in ("x.tar", "pipe:gzip -c x.tar")
            ShardFeed.Members(url) do members
                @test [member.name => String(read(member)) for member in members] == written
                @test iterate(members) === nothing
            end
        end
        ShardFeed.Members("x.tar") do members
            @test occursin("x.tar", sprint(show, members))
            member, = iterate(members)
            @test (member.kind, member.size, member.mode, member.uid) == (:file, 5, 0o644, 0)
            @test member.mtime == 0 && member.link === nothing && member.crc32 === nothing
            @test :gid in propertynames(member)
            @test String(read(member, 2)) == "fi" && !eof(member)
            @test String(read(member)) == "rst" && eof(member) && isempty(read(member))
            second, = iterate(members)
            @test shf_error(() -> read(member)).class === :USAGE
            buffer = zeros(UInt8, 3)
            @test readbytes!(second, buffer) == 3 && String(copy(buffer)) == "sec"
            @test readbytes!(second, buffer, 10) == 3 && String(buffer[1:3]) == "ond"
            @test sprint(show, second) == "member \"a.txt\": 6 bytes"
        end
    end
end

@testset "any number of an owner" begin
    with_files() do
        script = "import io, sys, tarfile\nwith tarfile.open('owner.tar', 'w') as tar:\n" *
                 "    info = tarfile.TarInfo('a.txt')\n" *
                 "    info.uid, info.gid, info.size = 2**64 - 2, 2**63, 3\n" *
                 "    tar.addfile(info, io.BytesIO(b'abc'))"
        run(`python3 -c $script`)
        ShardFeed.Members("owner.tar") do members
            member = first(members)
            @test (member.uid, member.gid) === (typemax(UInt64) - 1, UInt64(2)^63)
            @test String(read(member)) == "abc"
        end
        ShardFeed.Members(members -> (@test first(members).uid === UInt64(0)), "train-000.tar")
    end
end

@testset "members of damaged files" begin
    with_files() do
        write_tar("x.tar", ["a.txt" => "first", "b.bin" => repeat("b", 5000)])
        write("cut.tar", read("x.tar")[1:3000])
        members = ShardFeed.Members("cut.tar")
        for _ in 1:2
            error = shf_error(() -> foreach(read, members))
            @test error.class === :TRUNCATED && error.offset == 1024 && error.member == "b.bin"
        end
        close(members)
        @test !isopen(members) && shf_error(() -> iterate(members)).class === :USAGE
        @test shf_error(() -> ShardFeed.Members("missing.tar")).class === :IO
        @test shf_error(() -> ShardFeed.Members("x.tar"; shuffle=3)).class === :USAGE
    end
end

# Bytes of x.tar that the command gives when the test wants them: behind the first `count`, once the
# file `go` is there. So no test depends on the speed of the machine.
function gated(count)
    rm("go"; force=true)
    return "pipe:head -c $count x.tar; until [ -e go ]; do sleep 0.01; done; tail -c +$(count + 1) x.tar"
end

# Calls f until it ends without a timeout; what it returns, and how often it took too long. Each
# timeout is followed by a call of `then`.
function until_it_comes(f, then=() -> nothing)
    timeouts = 0
    while true
        try
            return f(), timeouts
        catch error
            error isa ShardFeedError && error.class === :TIMEOUT || rethrow()
            timeouts += 1
            then()
        end
    end
end

@testset "a timeout of members loses nothing" begin
    with_files() do
        write_tar("x.tar", ["a.txt" => "first"])
        ShardFeed.Members(gated(0); timeout=0.05) do members
            @test shf_error(() -> iterate(members)).class === :TIMEOUT
            touch("go")
            found, _ = until_it_comes(() -> iterate(members))
            text, _ = until_it_comes(() -> String(read(found[1])))
            @test text == "first"
        end
    end
end

@testset "an exception in the middle of a member loses nothing" begin
    with_files() do
        data = UInt8[n % 251 for n in 1:400_000]
        write_tar("x.tar", ["long.bin" => data, "b.txt" => "second"])
        slow(f) = ShardFeed.Members(gated(200_000); timeout=0.05) do members
            member, _ = until_it_comes(() -> first(members))
            f(member)
            @test eof(member) && isempty(read(member))
            second, _ = until_it_comes(() -> iterate(members)[1])
            text, _ = until_it_comes(() -> String(read(second)))
            @test text == "second"
        end
        slow() do member
            found, timeouts = until_it_comes(() -> read(member), () -> touch("go"))
            @test found == data && timeouts > 0
        end
        slow() do member
            start, _ = until_it_comes(() -> read(member, 10))
            @test start == data[1:10] && !eof(member)
            @test shf_error(() -> read(member, 300_000)).class === :TIMEOUT
            @test !eof(member)
            # Comes from what was put back.
            more, _ = until_it_comes(() -> read(member, 20))
            @test more == data[11:30]
            buffer = UInt8[]
            got, timeouts =
                until_it_comes(() -> readbytes!(member, buffer, 250_000), () -> touch("go"))
            @test got == 250_000 && buffer[1:got] == data[31:250_030] && timeouts > 0
            rest, _ = until_it_comes(() -> read(member))
            @test rest == data[250_031:end]
        end
        # Any error.
        write("cut.tar", read("x.tar")[1:100_000])
        ShardFeed.Members("pipe:cat cut.tar") do members
            member = first(members)
            for _ in 1:2
                @test shf_error(() -> read(member)).class === :TRUNCATED
            end
            @test read(member, 1000) == data[1:1000]
            @test shf_error(() -> read(member)).class === :TRUNCATED
        end
    end
end

@testset "tasks that share members" begin
    with_files() do
        # A member of the name "n" has n bytes. Each comes once, whoever gets it.
        write_tar("x.tar", [string(n) => zeros(UInt8, n) for n in 1:600])
        ShardFeed.Members("x.tar") do members
            takers = [Threads.@spawn(begin
                taken = Int[]
                while true
                    try
                        step = iterate(members)
                        step === nothing && break
                        push!(taken, parse(Int, step[1].name) == step[1].size ? step[1].size : -1)
                    catch error
                        error isa ShardFeedError && error.class === :USAGE || rethrow()
                    end
                end
                taken
            end) for _ in 1:3]
            @test sort(reduce(vcat, fetch.(takers))) == 1:600
        end
        # A call that is refused leaves the current member as it is.
        cp("train-000.tar", "x.tar"; force=true)
        ShardFeed.Members(gated(700)) do members
            member = first(members)
            reader = @async String(read(member))
            sleep(0.05)
            for use in (() -> iterate(members), () -> read(member, 1), () -> eof(member))
                error = shf_error(use)
                @test error.class === :USAGE && occursin("another task", error.message)
            end
            touch("go")
            @test fetch(reader) == "1"
        end
    end
end

# Ctrl-C that comes when the library has just found a member, or given bytes: the functions of the
# library, with an interrupt behind two of three calls.
const INTERRUPTED = raw"""
using ShardFeed
using ShardFeed: NativeBytes, Pointer
Base.exit_on_sigint(false)
ShardFeed.load()
const library_next = ShardFeed.address_of_shf_members_next[]
const library_read = ShardFeed.address_of_shf_members_read[]
const enabled = Ref(false)
const calls = Ref(0)
const sent = Ref(0)
function interrupt()
    enabled[] || return
    calls[] += 1
    calls[] % 3 == 0 && return
    sent[] += 1
    ccall(:kill, Cint, (Cint, Cint), getpid(), 2)
    for _ in 1:1000
        ShardFeed._is_interrupted() && break
        Base.Libc.systemsleep(0.001)
    end
end
function late_next(members::Pointer, name::Ptr{NativeBytes}, error::Ptr{UInt8})
    code = ccall(library_next, Int32, (Pointer, Ptr{NativeBytes}, Ptr{UInt8}), members, name, error)
    interrupt()
    return code
end
function late_read(members::Pointer, buffer::Ptr{UInt8}, room::Csize_t, size::Ptr{Csize_t}, error::Ptr{UInt8})
    code = ccall(
        library_read, Int32, (Pointer, Ptr{UInt8}, Csize_t, Ptr{Csize_t}, Ptr{UInt8}),
        members, buffer, room, size, error,
    )
    interrupt()
    return code
end
ShardFeed.address_of_shf_members_next[] =
    @cfunction(late_next, Int32, (Pointer, Ptr{NativeBytes}, Ptr{UInt8}))
ShardFeed.address_of_shf_members_read[] =
    @cfunction(late_read, Int32, (Pointer, Ptr{UInt8}, Csize_t, Ptr{Csize_t}, Ptr{UInt8}))

const caught = Ref(0)
function again(f)
    while true
        try
            return f()
        catch error
            error isa InterruptException || rethrow()
            caught[] += 1
        end
    end
end
function texts()
    ShardFeed.Members("x.tar") do members
        found = String[]
        while true
            step = again(() -> iterate(members))
            step === nothing && return found
            push!(found, string(step[1].name, " ", String(again(() -> read(step[1])))))
            again(() -> eof(step[1])) || push!(found, "more")
        end
    end
end
const wanted = texts()
enabled[] = true
println(texts() == wanted, " ", length(wanted), " ", caught[] == sent[], " ", sent[] > 12)
"""

@testset "Ctrl-C loses no member and no byte" begin
    with_files() do
        write_tar("x.tar", [string(n) => repeat("$n", n) for n in (0, 1, 2, 300_000, 4, 5)])
        write("interrupted.jl", INTERRUPTED)
        julia = joinpath(Sys.BINDIR, Base.julia_exename())
        flags = `--startup-file=no --compile=min --compiled-modules=no`
        @test readchomp(ignorestatus(`timeout -s KILL 60 $julia $flags interrupted.jl`)) == "true 6 true true"
    end
end
