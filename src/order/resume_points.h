// What a lane remembers of the samples that came in, so that a run can resume here: for every
// shard with samples that are still in the shuffle buffer, some places to start reading at. There
// is not one for each sample, so reading starts a little earlier than it must.
#pragma once

#include "order/lane_state.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace shf {

class ResumePoints {
  public:
    // A place to start reading at.
    struct Point {
        ShardState start;   // its position.next is not used
        uint64_t held = 0;  // samples from here up to the next point that are in the shuffle buffer
    };

    // Without `splits` shards are always read from their start.
    explicit ResumePoints(bool splits) : splits_(splits) {}
    [[nodiscard]] bool splits() const { return splits_; }

    void begin_epoch();
    // Another shard begins: reading starts at `start`.
    void begin_shard(ShardState start);
    void end_shard() { in_shard_ = false; }
    // After a restore: so many samples of a shard that lie behind `start` are in the shuffle buffer
    // already. Before any other shard begins.
    Point* restore(ShardState start, uint64_t held);
    // One sample goes into the shuffle buffer, the lane's number `ordinal`. let_go() when it leaves
    // the buffer; the pointer is good until then.
    Point* hold(SampleStart sample, uint64_t ordinal);
    void let_go(Point* point);
    // Number `number` of the shard is bad.
    void bad(uint64_t number) { points_.back().start.bad.push_back(number); }
    // For a lane without shuffle buffer: reading can start here.
    void move_to(SampleStart sample);

    // The shards that a state needs. `next` is the number of the next sample of the shard that is
    // being read.
    [[nodiscard]] std::vector<ShardState> shards(uint64_t next) const;

  private:
    static constexpr uint64_t samples_per_point = 256;  // at most
    void drop_idle(size_t keep);

    const bool splits_;
    std::deque<Point> points_;  // those in front without a sample in the buffer are gone
    bool in_shard_ = false;     // the last one is of a shard that has not ended
    SampleStart near_;          // the last sample of that shard whose start is known
};

// The numbers that the good samples with these ordinals have in their shard. Ascending, none below
// shard.ordinal.
std::vector<uint64_t> sample_numbers(const ShardState& shard, std::span<const uint64_t> ordinals);

}  // namespace shf
