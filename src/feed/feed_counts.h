// What the lanes of a server have done and do, all together. Any thread.
#pragma once

#include "stream/context.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace shf {

class FeedCounts {
  public:
    std::atomic<uint64_t> samples{0};              // that were sent
    std::atomic<uint64_t> bytes{0};                // of messages with samples, as they were sent
    std::atomic<uint64_t> credit{0};               // messages that may be sent now
    std::atomic<uint64_t> refused{0};              // messages of strangers and of consumers
    std::atomic<uint64_t> consumers{0}, lanes{0};  // that are there now

    // A lane begins to wait for credit, and has got it.
    void begin_wait();
    void end_wait();
    // Nanoseconds, waits that have not ended included.
    [[nodiscard]] uint64_t credit_wait_ns() const;

    // The counters of a lane count from now on, and its values of now until it is gone.
    void add_lane(const StreamContext& lane);
    void remove_lane(const StreamContext& lane);
    // Counter SHF_STAT_* of all lanes that there are and, of those that only grow, that there were.
    [[nodiscard]] uint64_t stat(int32_t stat) const;

  private:
    mutable std::mutex mutex_;
    std::vector<const StreamContext*> lanes_;
    std::array<uint64_t, Stats::size> ended_{};
    uint64_t waits_ = 0;  // that have not ended
    // The sum of all ends minus the sum of all starts, modulo 2^64.
    uint64_t wait_ns_ = 0;
};

// The text format 0.0.4 of Prometheus.
std::string metrics_of(const FeedCounts& counts);

}  // namespace shf
