// The order of all samples of one epoch, computed from how many each shard has: the lanes in turn,
// each behind its shuffle buffer, as they come when the shards are read.
#pragma once

#include "order/plan.h"
#include "order/shuffle_buffer.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace shf {

class IndexedOrder {
  public:
    // `plan` has the counts of all shards, and must outlive this.
    IndexedOrder(Plan& plan, const Options& options, uint64_t epoch);

    struct Place {
        uint64_t shard = 0, number = 0;  // of the sample in it
    };
    // Where element `t` of the global sequence lies; `t` is below the number of samples, and above
    // that of the call before. What lies between is computed along, at 2 to 50 nanoseconds each.
    Place at(uint64_t t);
    // Computes at most so many elements before `t`. False: there are more.
    bool advance(uint64_t t, uint64_t most);

  private:
    // One lane, whose samples are numbered as they come in.
    struct Lane {
        Lane(uint32_t number_in_plan, uint64_t shuffle) : number(number_in_plan), buffer(shuffle) {}

        uint32_t number;
        std::vector<uint64_t> ends;  // of its shards: the numbers behind their last samples
        uint64_t put = 0;            // in the shuffle buffer so far
        uint64_t taken = 0;
        ShuffleBuffer<uint64_t> buffer;

        [[nodiscard]] uint64_t samples() const { return ends.empty() ? 0 : ends.back(); }
    };
    uint64_t next_of(Lane& lane) const;
    std::pair<Lane*, uint64_t> take();
    void begin_round();

    Plan& plan_;
    const uint64_t epoch_;
    const bool shuffles_;
    std::vector<Lane> lanes_;
    std::vector<Lane*> round_;  // those that have a sample for this round
    size_t turn_ = 0;           // in round_
    uint64_t next_ = 0;         // element whose turn it is
};

}  // namespace shf
