// A lane that a server reads, as the consumer's sequence takes samples from it: messages that wait,
// oldest first.
#pragma once

#include "feed/feed_frames.h"
#include "stream/sample_lane.h"
#include "stream/shard_run.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace shf {

class FedLane final : public SampleLane {
  public:
    // What a message brought.
    struct Event {
        std::vector<BlockRef> blocks;
        bool epoch_end = false;
        LaneFrame about;
        std::optional<Fault> fault;  // the last event
    };

    // `wake` is called when an event was taken, without context.mutex.
    FedLane(LaneContext& context, const LaneState& from, std::function<void()> wake);

    // ---- The thread that receives. context.mutex is held. ----
    void push(Event event);
    // The position after all that was received.
    [[nodiscard]] const LaneState& received() const { return received_; }
    // Events that the consumer has taken. Any thread.
    [[nodiscard]] uint64_t taken() const { return taken_.load(std::memory_order_acquire); }

    // ---- Consumer ----
    [[nodiscard]] uint32_t number() const override { return number_; }
    Pull pull(Delivery& out) override;
    Pull pull_block(BlockRef& out, uint64_t most) override;
    void begin_epoch(uint64_t epoch) override;
    [[nodiscard]] const std::optional<Fault>& unopened() const override { return unopened_; }
    [[nodiscard]] bool opened() const override { return opened_; }
    [[nodiscard]] LaneState position(uint64_t epoch, uint64_t taken) const override;
    void cancel() override {}

  private:
    Pull fetch_block();
    void take_event(Event event);
    void end_event();
    void count_skips();

    LaneContext& context_;
    const uint32_t number_;
    const std::function<void()> wake_;
    std::atomic<uint64_t> taken_{0};

    // Guarded by context.mutex.
    std::deque<Event> events_;
    LaneState received_;

    // The consumer's.
    std::deque<BlockRef> blocks_;       // of the event that was taken last
    uint32_t next_ = 0;                 // sample of the first one
    uint64_t given_ = 0;                // samples of that event
    std::deque<SkippedFault> skipped_;  // of that event, to be counted
    LaneState before_, after_;          // of it
    uint64_t epoch_ = 0;
    bool epoch_over_ = false;
    bool opened_ = false;
    std::optional<Fault> unopened_;
    std::optional<Fault> fault_;  // of the lane; repeats
};

}  // namespace shf
