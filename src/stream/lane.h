// One lane that this process reads, as the consumer sees it: the shards that its readers have in
// hand, one after another, and the shuffle buffer behind them.
#pragma once

#include "order/resume_points.h"
#include "order/shuffle_buffer.h"
#include "order/shuffle_replay.h"
#include "stream/indexed_refill.h"
#include "stream/sample_lane.h"
#include "stream/shard_run.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <vector>

namespace shf {

class Lane final : public SampleLane {
  public:
    // At the start of an epoch.
    Lane(LaneContext& context, uint32_t number, uint64_t epoch);
    // At a saved position. Throws Error(FORMAT) when no lane can be there.
    Lane(LaneContext& context, const LaneState& state);

    // ---- Readers. Several threads; context.mutex is held. ----
    // The next shard to read, when there is one and not too many are in hand; else NULL.
    std::shared_ptr<ShardRun> next_run();
    // Every shard of the run has been given to a reader.
    [[nodiscard]] bool all_given() const;
    void cancel() override;
    std::condition_variable readers;  // readers without a shard wait here

    // ---- Consumer. One thread, which waits as context.wait says; context.mutex is not held. ----
    Pull pull(Delivery& out) override;
    Pull pull_block(BlockRef& out, uint64_t most) override;
    void begin_epoch(uint64_t epoch) override;
    [[nodiscard]] uint32_t number() const override { return number_; }
    [[nodiscard]] const std::optional<Fault>& unopened() const override { return unopened_; }
    [[nodiscard]] bool opened() const override { return opened_; }
    [[nodiscard]] LaneState position(uint64_t epoch, uint64_t taken) const override;
    [[nodiscard]] bool shuffles() const { return context_.single_samples; }
    // What reads the samples again that were in the shuffle buffer; NULL when there is nothing to
    // read or the readers do.
    [[nodiscard]] const std::shared_ptr<IndexedRefill>& indexed_refill() const {
        return indexed_refill_;
    }
    // Before it gave anything: whether its first sample is one of a local file, and needs hardly
    // anything else to be read.
    [[nodiscard]] bool starts_near() const;
    // The shard that comes next, with context.mutex held; NULL when no reader has it yet.
    [[nodiscard]] ShardRun* head() const { return runs_.empty() ? nullptr : runs_.front().get(); }

  private:
    // A sample in the shuffle buffer.
    struct Held {
        BlockRef block;  // none: indexed_refill_ has it
        ResumePoints::Point* point = nullptr;
        size_t place = 0;  // in indexed_refill_
    };
    // A shard in which reading resumes.
    struct ResumedShard {
        ShardState state;
        std::shared_ptr<const Resume> resume;
        std::vector<uint64_t> ordinals;  // of the samples that are wanted again
    };

    // Its position once the shuffle buffer is as it was, but for `epoch` and `taken`.
    [[nodiscard]] LaneState state_without_refill() const;
    [[nodiscard]] ShuffleHistory history_of(const LaneState& state) const;
    void restore_buffer(const LaneState& state);
    [[nodiscard]] bool has_index_of(uint64_t nth) const;
    [[nodiscard]] bool has_indexes() const;
    void refill_by_index();
    void end_indexed_refill();
    bool wait_for_event(std::unique_lock<std::mutex>& lock);
    Pull fetch_block();
    void begin_run(const ShardRun& run);
    void end_run();
    void take_event(ShardRun::Event event);
    [[nodiscard]] const ResumedShard* resumed_run() const;
    [[nodiscard]] bool refilling() const { return refilled_ < slots_.size(); }
    Pull refill();
    Pull fill();
    Held hold();
    Pull pull_in_order(Delivery& out);
    void hand_out(const Block& block) const;
    Pull give_up_rest();
    Pull abandon_rest();
    void drop_buffer();
    [[nodiscard]] bool limited() const { return context_.options.limit != 0; }

    LaneContext& context_;
    const uint32_t number_;
    const uint64_t most_runs_;  // in hand at once

    // Guarded by context.mutex.
    std::deque<std::shared_ptr<ShardRun>> runs_;
    std::optional<LaneQuota> given_quota_;  // of given_epoch_, once it is begun
    uint64_t given_epoch_, given_nth_ = 0;
    const uint64_t resumed_epoch_;
    size_t given_resumed_ = 0;

    // The consumer's.
    std::deque<ShardRun::Event> events_;  // taken from the first run
    bool last_of_epoch_ = false;          // that run is the last of its epoch
    bool in_run_ = false;                 // its first event was taken
    bool in_resumed_ = false;             // it is one of resumed_
    BlockRef block_;
    uint32_t next_ = 0;  // sample of block_
    bool epoch_over_ = false;
    uint64_t epoch_ = 0;
    // Samples of this epoch that it still gives, if it shuffles or has a limit.
    uint64_t takes_ = LaneQuota::all;
    bool opened_ = false;  // see opened() and unopened()
    std::optional<Fault> unopened_;
    std::optional<Fault> fault_;  // waits until the shuffle buffer is empty
    ShuffleBuffer<Held> buffer_;
    std::shared_ptr<IndexedRefill> indexed_refill_;  // changes with context.mutex held
    size_t to_refill_ = 0;                           // samples that are still taken from it

    // Its position, for position().
    ResumePoints resume_points_;
    uint64_t begun_ = 0;    // shards of the epoch that were begun
    uint64_t arrived_ = 0;  // number, in its shard, of the sample that comes in next
    uint64_t put_ = 0;      // samples that came into the buffer in this epoch
    uint64_t base_ = 0;     // as LaneState has it
    // Restored while samples were drawn and nothing came in: nothing comes in before the buffer is
    // empty, also when the fault that was the reason does not come again.
    bool closed_ = false;

    // After a restore.
    std::vector<ResumedShard> resumed_;  // shards that were not finished; does not change
    size_t begun_resumed_ = 0;
    size_t wanted_again_ = 0;        // samples of the current one that came in
    std::optional<LaneState> from_;  // while the buffer is refilled
    std::vector<size_t> slots_;      // of the buffer, in the order in which their samples come in
    std::vector<Held> refill_;       // by slot
    size_t refilled_ = 0;
};

}  // namespace shf
