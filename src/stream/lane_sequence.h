// The samples of one consumer's lanes: readers ahead of it, whose turn it is, and epochs.
#pragma once

#include "order/turns.h"
#include "stream/lane.h"
#include "stream/lane_threads.h"
#include "stream/sequence.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shf {

class LaneSequence final : public SampleSequence {
  public:
    // Plans; opens no shard and starts no thread. `provider` reads the shards; NULL: this process
    // does, as the options say. Throws Error.
    LaneSequence(std::span<const char* const> urls, const Options& options,
                 std::unique_ptr<LaneProvider> provider = nullptr);

    Pull pull(Delivery& out, const Wait& wait) override;
    Pull pull_block(BlockRef& out, uint64_t most, const Wait& wait) override;
    [[nodiscard]] bool gives_whole_blocks() const override {
        return lanes_.size() == 1 && !context_.single_samples && !shares_lanes();
    }
    [[nodiscard]] Position position() override;
    [[nodiscard]] StreamState identity() override;
    [[nodiscard]] Restored prepare(const StreamState& state) override;
    void apply(Restored restored) override;
    void repeat() noexcept override;
    [[nodiscard]] StreamContext& context() override { return context_; }

    [[nodiscard]] const Plan& plan() const { return context_.plan; }
    // Several consumers read the lanes.
    [[nodiscard]] bool shares_lanes() const { return context_.plan.shares_lanes(); }
    // Before a position is noted from which samples of this consumer are counted: what is still to
    // be dropped is counted in another way.
    void drop_delivered_shared(const Wait& wait);

    // Starts the readers, unless they run or there is nothing to read.
    void start();
    [[nodiscard]] bool started() const {
        return readers_.started() || (provider_ && provider_->started());
    }
    // After context().cancel was requested, from any thread: wakes all threads.
    void interrupt() noexcept;
    // Ends the readers, after that.
    void join() noexcept;
    // Readers that may continue, after memory was handed out.
    void wake_readers() { context_.wake_readers(); }
    // The thread that waits for samples.
    void wake_consumer() noexcept;
    // At the end, so that no process is left then.
    void leave_pipes() noexcept { context_.watch.reset(); }

    // As a part of a mix: its number among the streams there, and whether it can begin again.
    void set_part(uint32_t number) noexcept { context_.part = number; }
    void check_repeats() const;
    // Likewise, whether it can be one.
    void check_mixes() const;

  private:
    [[nodiscard]] bool is_empty() const override { return turns_.empty(); }
    void read_by_index();
    void check_share() const;
    [[nodiscard]] LaneState indexed_state(const StreamState& state) const;
    void refuse_second_reading(bool again) const;
    void warn_of_sharing();
    void set_lanes(std::vector<std::unique_ptr<SampleLane>> lanes,
                   std::span<const LaneState* const> states);
    void end_epoch(size_t lane);
    void end_pass(const SampleLane& lane, uint64_t next);
    Pull pull_own(Delivery& out, size_t& lane);
    Pull drop_delivered();
    Pull drop_delivered_own();
    void check_even(const StreamState& state) const;
    void check_messages(const StreamState& state) const;

    LaneContext context_;
    std::unique_ptr<LaneProvider> provider_;          // NULL: each is a Lane
    std::vector<std::unique_ptr<SampleLane>> lanes_;  // this consumer's, those that have shards
    LaneThreads readers_;
    Turns turns_;
    std::vector<Turns::Turn> ended_lanes_;  // of lanes past the last epoch
    // Of the lanes that ended the epoch in which others still are, as Lane has them.
    bool opened_ = false;
    std::optional<Fault> unopened_;
    uint64_t last_epoch_with_samples_ = 0;  // the last one in which a lane gave a sample
    // Samples to drop before the first one, by lane, after a restore; skips_own_ as Position has
    // it.
    std::vector<uint64_t> skip_;
    bool skips_own_ = false;
    uint64_t passed_ = 0;          // of lanes that several consumers read, as Position has it
    uint64_t shards_hash_ = 0;     // once it is known
    bool skipped_before_ = false;  // samples were left out in the run that was restored
};

}  // namespace shf
