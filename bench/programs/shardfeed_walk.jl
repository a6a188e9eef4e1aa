# julia shardfeed_walk.jl MODE URL...
#
# Modes: samples  each sample of a stream, work as in measure.h
#        every    the same, and every byte of every field is added up
#
# As shardfeed_walk.c. Compiled before the clock starts, by reading a few samples. Nothing here may
# throw: Julia 1.5 with Debian's libunwind crashes on exceptions in compiled code.

using ShardFeed

mutable struct Measure
    first::Float64
    samples::Int
    members::Int
    bytes::Int
    checksum::Int
    everything::Int
end

function touch_pages(bytes)
    sum = 0
    for i in 1:4096:length(bytes)
        sum += @inbounds bytes[i]
    end
    return sum
end

function touch_all(bytes)
    sum = 0
    for byte in bytes
        sum += byte
    end
    return sum
end

function walk(stream, m::Measure, every::Bool, most::Int, start::Float64)
    for sample in stream
        m.samples == 0 && (m.first = time() - start)
        for bytes in values(sample)
            m.checksum += touch_pages(bytes)
            every && (m.everything += touch_all(bytes))
            m.bytes += length(bytes)
            m.members += 1
        end
        m.samples += 1
        m.samples == most && break
    end
    return
end

cpu_seconds() = ccall(:clock, Clong, ()) / 1e6

function measure(urls, every, most)
    m = Measure(0, 0, 0, 0, 0, 0)
    cpu = cpu_seconds()
    start = time()
    stream = ShardFeed.open(urls)
    walk(stream, m, every, most, start)
    peak = ShardFeed.stats(stream)[:memory_peak]
    close(stream)
    return m, time() - start, cpu_seconds() - cpu, peak
end

function peak_rss_bytes()
    for line in eachline("/proc/self/status")
        startswith(line, "VmHWM:") && return parse(Int, split(line)[2]) * 1024
    end
    return 0
end

function main(mode, urls)
    every = mode == "every"
    measure(urls, every, 10)
    GC.gc()
    m, seconds, cpu, peak = measure(urls, every, 0)
    println("{\"reader\": \"julia-$mode\", \"samples\": $(m.samples), \"members\": $(m.members), ",
            "\"bytes\": $(m.bytes), \"checksum\": $(m.checksum), \"everything\": $(m.everything), ",
            "\"seconds\": $seconds, \"cpu_seconds\": $cpu, \"first_seconds\": $(m.first), ",
            "\"peak_rss_bytes\": $(peak_rss_bytes()), \"engine_peak_bytes\": $peak}")
end

main(ARGS[1], ARGS[2:end])
