// Where the reading of a shard resumes. Saved states, lanes and readers all say it with this.
#pragma once

#include <cstdint>

namespace shf {

// A sample and the byte of the (decompressed) shard where it starts. Samples are numbered from 0 in
// the order of the shard. Bad samples have numbers too; samples that SampleFilter excludes have
// none.
struct SampleStart {
    uint64_t offset = 0, number = 0;
};

struct ShardPosition {
    static constexpr uint64_t never = UINT64_MAX;

    SampleStart from;      // reading starts here
    uint64_t next = 0;     // from this number on all samples are wanted; 0: all, `never`: none
    uint32_t version = 0;  // hash of what identifies the version of the shard; 0: unknown
};

}  // namespace shf
