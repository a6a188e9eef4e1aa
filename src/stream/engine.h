// The engine behind a stream: readers that run the plan ahead, and the consumer's side that takes
// samples in the order of the plan; or a mix, whose samples come from the engines of other streams.
#pragma once

#include "core/error.h"
#include "order/mixture.h"
#include "order/stream_state.h"
#include "order/turns.h"
#include "stream/batcher.h"
#include "stream/lane.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace shf {

class Engine final : private LaneClient, private BatchClient {
  public:
    // Plans; opens no shard and starts no thread. Throws Error.
    Engine(std::span<const char* const> urls, const Options& options);
    // Of a mix by weight; without weights all are equal. Takes the parts over, which nothing was
    // taken from yet, unless it throws Error.
    Engine(std::vector<std::unique_ptr<Engine>>& parts, std::span<const double> weights,
           const Options& options);
    // Stops and joins the readers. Not to be run in a forked child.
    ~Engine() override;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // The next sample, with a reference for the caller; NULL at the end. Throws Error.
    Sample* next();
    // The next samples, at most `most` (0: no bound); NULL at the end. Throws Error.
    BlockRef next_block(uint64_t most);
    // The next batch; NULL at the end. Throws Error. Of a stream with the option "batch", which
    // gives nothing else.
    BatchRef next_batch();

    // The position of the user, who has not used the last `unread` samples of the block that came
    // last. Throws Error.
    [[nodiscard]] StreamState save(uint64_t unread);
    // Goes on there. Before anything was taken. Throws Error; the stream then is as before.
    void restore(const StreamState& state);

    // From any thread.
    void cancel() noexcept;
    [[nodiscard]] uint64_t stat(int32_t stat) const;

  private:
    using Clock = std::chrono::steady_clock;
    // How a thread that pulls samples waits for them.
    struct Waiting {
        bool at_all = true;
        bool serves = true;  // it is inside a call, and may run callbacks
        std::optional<Clock::time_point> until;
    };

    bool wait(std::unique_lock<std::mutex>& lock, Lane& lane) override;
    void fault(Fault fault, bool whole_shard) override;
    void warn(const std::string& message) override;
    SampleRun take_run() override;
    Position position() override;
    void bad_row(Fault bad) override { fault(std::move(bad), false); }
    [[nodiscard]] bool wants_service() const override;
    void serve() override;

    void begin_call();
    template <typename Take>
    auto guarded(Take take);
    void leave_pipes() noexcept;
    Pull pull(Delivery& out);
    Pull pull_block(BlockRef& out, uint64_t most);
    void end_epoch(size_t lane);
    void end_pass(const Lane& lane, uint64_t next);
    [[nodiscard]] bool endless() const;
    [[nodiscard]] bool is_over(uint64_t epoch) const;
    // One lane without shuffle buffer: the blocks of its readers are the sequence.
    [[nodiscard]] bool gives_whole_blocks() const {
        return lanes_.size() == 1 && !shared_.single_samples && !shares_lanes();
    }
    Pull settle();
    Pull settle_own();
    Pull pull_own(Delivery& out, size_t& lane);
    void settle_shared();
    [[nodiscard]] bool shares_lanes() const;
    void note_call();
    void note_block(const Block& block);
    [[nodiscard]] StreamState identity();
    void check_even(const StreamState& state) const;
    void check_whole(const StreamState& state) const;
    [[nodiscard]] uint64_t remaining_after(const StreamState& state) const;
    void set_lanes(std::vector<std::unique_ptr<Lane>> lanes,
                   std::span<const LaneState* const> states);
    void set_epoch_samples(const Plan& plan);
    // Of this stream, or of the first one in a mix.
    [[nodiscard]] const Plan& plan() const {
        return mixture_ ? parts_.front()->plan() : shared_.plan;
    }
    void use_up(uint64_t samples) { remaining_ -= remaining_ == UINT64_MAX ? 0 : samples; }
    void count(uint64_t samples, uint64_t bytes);
    void check_mode(bool batches) const;
    void pass_on_notes();
    void warn_of_sharing() const;
    [[nodiscard]] bool at_end() const {
        return remaining_ == 0 || (mixture_ ? mix_at_end() : turns_.empty());
    }
    bool gather(uint64_t most);
    void refuse_second_reading(bool again) const;
    void start_readers();
    void start_recall();
    void begin_all();
    void join_readers() noexcept;
    template <typename Act>
    void each_pool(Act act) const;
    static void run_reader(Shared& shared, Lane& lane) noexcept;

    // Mixes: engine_mix.cpp.
    void check_parts(std::span<const std::unique_ptr<Engine>> parts) const;
    void check_epochs(std::span<const std::unique_ptr<Engine>> parts) const;
    void check_consumer(const Plan& plan) const;
    [[nodiscard]] bool untouched() const;
    [[nodiscard]] unsigned depth() const;
    uint32_t become_part(Engine& mix, uint32_t number) noexcept;
    void check_repeats() const;
    void repeat() noexcept;
    [[nodiscard]] bool mix_at_end() const;
    Pull pull_part(Delivery& out);

    // What a restore changes, made before anything is.
    struct Restored {
        std::vector<std::unique_ptr<Lane>> lanes;
        std::vector<const LaneState*> states;
        uint64_t remaining = UINT64_MAX;
        uint64_t mixed = 0, passed = 0;
        bool skips_own = false;
        std::vector<Restored> parts;
    };
    [[nodiscard]] Restored prepare(const StreamState& state);
    void apply(Restored restored);

    Shared shared_;
    std::vector<std::unique_ptr<Lane>> lanes_;  // this consumer's, those that have shards
    std::vector<std::thread> readers_;
    Turns turns_;
    std::vector<Turns::Turn> over_;    // of lanes past the last epoch
    uint64_t remaining_ = UINT64_MAX;  // samples until the end, under epoch_samples
    // Of the lanes that ended the epoch in which others still are, as Lane has them.
    bool opened_ = false;
    std::optional<Fault> unopened_;
    uint64_t fruitful_epoch_ = 0;   // the last one in which a lane gave a sample
    std::optional<Fault> failure_;  // of the stream; repeats
    // Of the thread that pulls, and of the call that the user is in.
    Waiting waiting_;
    std::optional<Clock::time_point> deadline_;

    // Of a mix.
    std::vector<std::unique_ptr<Engine>> parts_;
    std::optional<Mixture> mixture_;
    std::vector<bool> ended_;  // parts that were found at their end
    uint64_t mixed_ = 0;       // samples that came from the parts
    Engine* mix_ = nullptr;    // this is a part of it

    // Samples to drop before the first one, by lane, after a restore; skips_own_ as Position has
    // it.
    std::vector<uint64_t> skip_;
    bool skips_own_ = false;
    uint64_t passed_ = 0;  // of lanes that several consumers read, as Position has it
    // For save() in the middle of a block: the position at the start of some call of
    // next_block, and the lanes of the samples that were handed out since.
    struct Note {
        Position position;
        std::vector<LanePlace> handed;
        uint64_t bytes = 0;
    };
    std::optional<Note> note_;
    std::optional<Note> older_note_;  // when note_ begins after the first sample of the last block
    uint64_t last_block_ = 0;         // its samples
    std::string restored_columns_;
    uint64_t shards_hash_ = 0;  // once it is known

    Delivery pending_;  // taken from a lane, did not fit the last block
    BlockBuilder builder_;
    BlockRef gathered_;
    std::unique_ptr<Batcher> batcher_;

    bool warns_of_sharing_ = false;  // it was not said yet
    std::mutex notes_mutex_;
    std::vector<std::string> notes_;  // for the log, which is called on the consumer's thread
};

}  // namespace shf
