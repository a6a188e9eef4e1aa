// Reads one lane for a consumer, on a thread of its own, and makes messages of its samples while
// there is credit.
#pragma once

#include "core/options.h"
#include "feed/feed_block.h"
#include "feed/feed_frames.h"
#include "feed/row_writer.h"
#include "stream/lane.h"
#include "stream/lane_threads.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace shf {

class LaneFeeder {
  public:
    // Gets the messages, in order, from the feeder's thread. Throws nothing.
    using Post = std::function<void(FeedMessage)>;

    // Starts. `options` are those of the consumer on this server; `rows`: samples are decoded.
    // Throws Error.
    LaneFeeder(std::span<const char* const> urls, const Options& options, bool rows,
               const OpenFrame& open, Post post);
    ~LaneFeeder();
    LaneFeeder(const LaneFeeder&) = delete;
    LaneFeeder& operator=(const LaneFeeder&) = delete;

    // Any thread.
    void add_credit(uint64_t events);
    // No message is begun after this; the destructor waits until the thread has ended.
    void stop() noexcept;
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }

  private:
    void run() noexcept;
    void feed();
    bool take_credit();
    Pull fill();
    void add(const Delivery& sample);
    void end_epoch();
    [[nodiscard]] LaneFrame about(uint64_t epoch);
    [[nodiscard]] bool is_over() const;

    const uint64_t opening_, block_bytes_;
    const Post post_;
    LaneContext context_;
    std::unique_ptr<Lane> lane_;
    LaneThreads readers_;
    std::optional<RowWriter> rows_;  // where samples are decoded
    FeedBlockWriter writer_;
    uint64_t epoch_, taken_;  // of the lane
    uint64_t shards_ = 0;     // told of
    std::vector<SkippedFault> skipped_;
    std::atomic<uint64_t> samples_{0};
    std::atomic<bool> ended_{false};

    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t credit_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace shf
