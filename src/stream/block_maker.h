// Makes blocks of samples that come one by one: from several lanes, or out of shuffle buffers.
#pragma once

#include "sample/block_builder.h"
#include "stream/sequence.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace shf {

class BlockMaker {
  public:
    // The references must outlive it.
    explicit BlockMaker(SampleSequence& sequence);

    // The next block, of at most `most` samples; waits only for its first sample. NULL at the end.
    // Throws Error; what a fault behind the first sample was is left for take_fault().
    BlockRef next(uint64_t most, const Wait& wait);
    std::optional<Fault> take_fault() { return std::exchange(fault_, std::nullopt); }

    // A sample that was pulled and did not fit the last block.
    [[nodiscard]] bool has_pending() const { return static_cast<bool>(pending_.block); }
    Delivery take_pending() { return std::move(pending_); }
    // next() failed with samples that it had pulled: no block has them.
    [[nodiscard]] bool lost() const { return lost_; }

  private:
    SampleSequence& sequence_;
    Delivery pending_;
    bool lost_ = false;
    std::optional<Fault> fault_;
    BlockRef full_;
    BlockBuilder builder_;
};

}  // namespace shf
