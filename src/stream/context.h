// What all threads of one stream share, be it a stream of shards or a mix: options, counters,
// memory, and what becomes of faults.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/stats.h"
#include "io/source_context.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace shf {

using Clock = std::chrono::steady_clock;

// How a thread that pulls samples waits for them.
struct Wait {
    bool at_all = true;
    bool serves = true;  // it is inside a call, and may run callbacks
    std::optional<Clock::time_point> until;
};

struct StreamContext {
    explicit StreamContext(const Options& given)
        : options(given), pool(Pool::make(options)), batched(options.batch > 0) {
        source_use.warn = [this](std::string message) { warn(std::move(message)); };
    }
    ~StreamContext();
    StreamContext(const StreamContext&) = delete;
    StreamContext& operator=(const StreamContext&) = delete;

    Options options;  // no change once something was read
    Cancel cancel;
    Stats stats;
    SourceUse source_use;
    Pool* const pool;
    // Gets what is skipped, instead of being noted here: for a stream whose consumer is
    // another process. Set before anything is read.
    std::function<void(Fault fault, bool whole_shard)> forward_skip;
    const bool batched;  // samples go into batches: their memory is ours to the end
    std::atomic<uint64_t> batch_bytes{0};  // held by batches in the making

    // Counter `stat` (SHF_STAT_*), whoever counts it. Any thread.
    [[nodiscard]] uint64_t stat(int32_t stat) const;
    // A sample or a shard is bad: throws Error, or counts and returns when it is to be skipped. Any
    // thread.
    void fault(Fault fault, bool whole_shard);
    // A warning for the log. Any thread.
    void warn(std::string message);
    // Passes warnings and skips on, on the thread that is inside a call.
    void pass_on_notices();
    // Counts the time since `start` as waiting of the consumer.
    void count_wait(Clock::time_point start);

  private:
    struct Notice {
        std::string warning;
        std::optional<Fault> skipped;  // when the program asks for skips
        bool whole_shard = false;
    };
    void note(Notice notice);
    void pass_on(const Notice& notice) const;

    std::mutex mutex_;
    std::vector<Notice> notices_;
    std::atomic<bool> any_notice_{false};
};

}  // namespace shf
