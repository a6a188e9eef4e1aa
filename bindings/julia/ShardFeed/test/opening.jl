# What hangs while it is opened ends by its time.

# A FIFO that nobody writes into, in the folder of the test.
make_fifo() = run(`mkfifo fifo`)

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
