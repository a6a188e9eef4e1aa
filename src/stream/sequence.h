// Samples in the order of the plan: those of lanes (LaneSequence), or of several sequences by
// weight (MixSequence). One thread at a time uses a sequence.
#pragma once

#include "order/plan.h"
#include "order/stream_state.h"
#include "stream/context.h"
#include "stream/sample_lane.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shf {

class SampleSequence {
  public:
    virtual ~SampleSequence() = default;

    // The next sample. `epoch_end` at the end of the sequence. Throws Error.
    virtual Pull pull(Delivery& out, const Wait& wait) = 0;
    // The next samples, at most `most`, as a block that its reader made. `sample` without a block:
    // the next sample comes from pull(). Throws Error.
    virtual Pull pull_block(BlockRef& /*out*/, uint64_t /*most*/, const Wait& /*wait*/) {
        return Pull::sample;
    }
    // Whether the blocks of the readers are the sequence: pull_block() is worth a call.
    [[nodiscard]] virtual bool gives_whole_blocks() const { return false; }

    // Samples until the end under the option epoch_samples; UINT64_MAX: not counted. Who takes
    // samples counts them with use_up().
    [[nodiscard]] uint64_t remaining() const { return remaining_; }
    void use_up(uint64_t samples) { remaining_ -= remaining_ == UINT64_MAX ? 0 : samples; }
    [[nodiscard]] bool at_end() const { return remaining_ == 0 || is_empty(); }

    // Where the samples are that are pulled next.
    [[nodiscard]] virtual Position position() = 0;
    // What of a saved state is the same all the time.
    [[nodiscard]] virtual StreamState identity() = 0;

    // What a restore changes, made before anything is.
    struct Restored {
        std::vector<std::unique_ptr<SampleLane>> lanes;
        std::vector<const LaneState*> states;  // in the state that is restored
        std::unique_ptr<LaneState> indexed;    // with the option by_index: the one of `states`
        uint64_t remaining = UINT64_MAX;
        uint64_t mixed = 0, passed = 0;
        bool skips_own = false;
        bool skipped = false;  // with the option by_index: samples were left out before
        std::vector<Restored> parts;
    };
    // Before anything was pulled; the state is of this run. Throws Error, and changes nothing.
    [[nodiscard]] virtual Restored prepare(const StreamState& state) = 0;
    virtual void apply(Restored restored) = 0;

    // From now on it never ends, as a part of a mix with until=forever.
    virtual void repeat() noexcept = 0;

    [[nodiscard]] virtual StreamContext& context() = 0;

  protected:
    [[nodiscard]] virtual bool is_empty() const = 0;
    // Counts down to the end of the last epoch where the option epoch_samples is set.
    void begin_countdown(const Plan& plan);
    // remaining() after a restore of `state`, of which the consumer of `plan` has its share. Throws
    // Error(USAGE) when the state lacks what other consumers know.
    [[nodiscard]] uint64_t remaining_after(const StreamState& state, const Plan& plan);

    uint64_t remaining_ = UINT64_MAX;
};

}  // namespace shf
