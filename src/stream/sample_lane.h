// One lane as the sequence takes samples from it, whoever reads its shards: readers that go through
// them from front to back (Lane), readers that take samples at their places (IndexedLane), or a
// server (feed/fed_lane.h).
#pragma once

#include "core/error.h"
#include "order/lane_state.h"
#include "sample/block.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shf {

struct LaneContext;

// A sample on its way to the user. Holds a reference to its block.
struct Delivery {
    BlockRef block;
    uint32_t index = 0;
};

enum class Pull : uint8_t {
    sample,     // here it is
    epoch_end,  // the lane has no more samples in this epoch
    later,      // nothing yet, and the caller does not want to wait
};

class SampleLane {
  public:
    SampleLane() = default;
    virtual ~SampleLane() = default;
    SampleLane(const SampleLane&) = delete;
    SampleLane& operator=(const SampleLane&) = delete;

    [[nodiscard]] virtual uint32_t number() const = 0;

    // ---- Consumer. One thread, which waits as context.wait says; context.mutex is not held. ----
    virtual Pull pull(Delivery& out) = 0;
    // The next block as its reader made it, if that is what comes next and it has at most `most`
    // samples. Only for a lane without shuffle.
    virtual Pull pull_block(BlockRef& out, uint64_t most) = 0;
    virtual void begin_epoch(uint64_t epoch) = 0;
    // Why the first of its shards could not be opened when in this epoch, so far, none could.
    [[nodiscard]] virtual const std::optional<Fault>& unopened() const = 0;
    // Whether in this epoch, so far, one of its shards could be.
    [[nodiscard]] virtual bool opened() const = 0;
    // A position from which it gives the samples that come next, some samples before them it may
    // be (`skip`). The consumer has taken `taken` samples of `epoch` from it.
    [[nodiscard]] virtual LaneState position(uint64_t epoch, uint64_t taken) const = 0;

    // The stream was cancelled: who reads for it stops. Any thread; context.mutex is held.
    virtual void cancel() = 0;
};

// Lanes that bring what reads them: IndexedLanes, and those that another process reads.
class LaneProvider {
  public:
    virtual ~LaneProvider() = default;
    // With the option even: how many samples each shard has; nothing where this process finds out.
    [[nodiscard]] virtual std::optional<std::vector<uint32_t>> counts() const = 0;
    // A lane at a position; that of the start of an epoch has nothing but the numbers of both. The
    // samples that the user has had of those behind it are for the sequence to drop.
    virtual std::unique_ptr<SampleLane> lane(LaneContext& context, const LaneState& from) = 0;
    // The lanes have no last epoch. Before start().
    virtual void repeat() noexcept = 0;
    // Begins to read ahead for lanes that it made. Once. Throws Error.
    virtual void start(LaneContext& context,
                       std::span<const std::unique_ptr<SampleLane>> lanes) = 0;
    [[nodiscard]] virtual bool started() const = 0;
    // Ends its threads, after the stream was cancelled.
    virtual void join() noexcept = 0;
};

}  // namespace shf
