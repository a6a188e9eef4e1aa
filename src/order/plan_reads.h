// When one consumer reads which shard in an epoch, computed from the plan and the counts of the
// shards alone.
#pragma once

#include "core/options.h"

#include <cstdint>
#include <vector>

namespace shf {

// One reading of a shard.
struct ShardRead {
    uint64_t shard = 0;
    uint64_t samples = 0;  // that are read of it
    // The consumer's samples, numbered from 0 in the epoch, that it takes while the shard is read:
    // a sample is read when its lane has to put it into the shuffle buffer to give the next one.
    uint64_t first = 0, last = 0;
};

// Of epoch options.epoch, in the order in which they begin. `options` are those of the consumer.
// Throws Error(USAGE) as Plan does, but not for fewer shards than consumers, and for epoch_samples.
std::vector<ShardRead> reads_of_consumer(const Options& options,
                                         const std::vector<uint32_t>& counts);

}  // namespace shf
