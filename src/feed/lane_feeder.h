// Reads one lane for a consumer, on a thread of its own, and makes messages of its samples while
// there is credit.
#pragma once

#include "core/options.h"
#include "feed/feed_block.h"
#include "feed/feed_counts.h"
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
    static constexpr uint64_t largest_credit = 16;

    struct Output {
        // Gets the messages, in order, from the feeder's thread. Throws nothing.
        std::function<void(FeedMessage)> post;
        FeedCounts& counts;
        Recycler& payloads;  // where the memory of messages comes from
        // Messages that a consumer may have asked for and not got; more credit is ignored.
        uint64_t most_credit = largest_credit;
    };

    // The list of shards, which must be the one that it was when the server began.
    struct Shards {
        std::span<const char* const> urls;
        uint64_t count = 0;
        uint64_t hash = 0;  // as hash_of_names()
    };

    // Starts. `options` are those of the consumer on this server; `rows`: samples are decoded. The
    // shards must outlive it. What is wrong with the lane is posted.
    LaneFeeder(Shards shards, const Options& options, bool rows, const OpenFrame& open,
               Output output);
    ~LaneFeeder();
    LaneFeeder(const LaneFeeder&) = delete;
    LaneFeeder& operator=(const LaneFeeder&) = delete;

    [[nodiscard]] uint32_t number() const { return open_.from.lane; }
    // Any thread.
    void add_credit(uint64_t events);
    // No message is begun after this; the destructor waits until the thread has ended.
    void stop() noexcept;
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    // What reads the lane; made on the feeder's thread, because lists of shards, indexes and
    // shuffle buffers take time.
    struct Reading {
        Reading(Shards shards, const Options& options, bool rows, const LaneState& from,
                FeedCounts& feed_counts);
        ~Reading() {
            readers.join();
            counts.remove_lane(context);
        }
        void cancel() noexcept;

        LaneContext context;
        std::unique_ptr<Lane> lane;
        std::optional<RowWriter> rows;  // where samples are decoded
        LaneThreads readers;
        FeedCounts& counts;
    };

    void run() noexcept;
    void feed(Reading& reading);
    bool take_credit();
    void drop_credit() noexcept;
    Pull fill(Reading& reading);
    void add(Reading& reading, const Delivery& delivery);
    void skip(Fault fault, bool whole_shard);
    void flush();
    void end_epoch(Reading& reading);
    void note_position(const Reading& reading);
    [[nodiscard]] LaneFrame about();

    const Shards shards_;
    const Options options_;
    const bool decodes_;
    const OpenFrame open_;
    const Output output_;
    const uint64_t most_credit_;
    FeedBlockWriter writer_;
    PayloadPacker packer_;
    uint64_t epoch_, taken_;  // of the lane
    LaneState after_;         // its position after the samples that were added
    LaneCounts counts_{}, told_{};
    bool opened_ = false;
    std::optional<Fault> unopened_;
    std::vector<SkippedFault> skipped_;
    bool sent_ = false;  // a sample, by this feeder
    std::atomic<bool> ended_{false};

    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t credit_;
    bool stopped_ = false;
    Reading* reading_ = nullptr;  // while it is there
    std::thread thread_;
};

}  // namespace shf
