// Where the reading of a shard resumes, and which of the samples before that are wanted again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shf {

// Samples are counted as they stand in the shard, 0, 1, ..., bad ones too, but not those that
// SampleFilter leaves out.
struct Resume {
    static constexpr uint64_t never = UINT64_MAX;

    uint64_t offset = 0, number = 0;  // where sample `number` starts in the (decompressed) shard
    std::vector<uint64_t> wanted;     // ascending, below `next`
    uint64_t next = 0;                // from this number on all are wanted; `never`: none ...
    uint64_t end = never;             // ... up to this one
    uint32_t version = 0;             // of the shard, as Origin has it; 0: nothing is known

    [[nodiscard]] bool wants(uint64_t sample) const {
        return (sample >= next && sample < end) ||
               std::binary_search(wanted.begin(), wanted.end(), sample);
    }
    // Nothing from this number on is wanted.
    [[nodiscard]] uint64_t stop() const {
        if (next != never) return end;
        return wanted.empty() ? 0 : wanted.back() + 1;
    }
};

}  // namespace shf
