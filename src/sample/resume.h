// Where the reading of a shard resumes, and which of the samples before that are wanted again.
#pragma once

#include "core/shard_position.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shf {

struct Resume {
    static constexpr uint64_t never = ShardPosition::never;

    ShardPosition position;
    std::vector<uint64_t> wanted;  // ascending, below position.next
    uint64_t end = never;          // no sample from this number on is wanted

    [[nodiscard]] bool wants(uint64_t sample) const {
        return (sample >= position.next && sample < end) ||
               std::binary_search(wanted.begin(), wanted.end(), sample);
    }
    // Nothing from this number on is wanted.
    [[nodiscard]] uint64_t stop() const {
        if (position.next != never) return end;
        return wanted.empty() ? 0 : wanted.back() + 1;
    }
};

}  // namespace shf
