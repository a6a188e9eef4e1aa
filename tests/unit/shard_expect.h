// Expectations on a shard that must hold however its bytes arrive.
#pragma once

#include "shard_driver.h"

#include <gtest/gtest.h>

namespace shf::test {

// The one result of all ways to feed the reader.
inline ShardResult read_every_way(std::string_view bytes, const Options& options = {}) {
    const ShardResult first = read_shard(bytes, options);
    for (const size_t chunk : {0U, 1U, 7U, 511U, 512U, 513U, 65536U})
        for (const bool size_known : {true, false})
            for (const bool alone : {true, false}) {
                const ShardResult other = read_shard(bytes, options, {chunk, size_known, alone});
                const bool same = first.same_as(other);
                EXPECT_TRUE(same) << "chunk " << chunk << ", size known " << size_known
                                  << ", alone " << alone << ": " << testing::PrintToString(other)
                                  << "\ninstead of " << testing::PrintToString(first);
                if (!same) return other;
            }
    return first;
}

// Expects the same fault every way.
inline ShardResult expect_fault(std::string_view bytes, int32_t code, uint64_t offset,
                                const Options& options = {}) {
    ShardResult result = read_every_way(bytes, options);
    EXPECT_STREQ(shf_error_name(result.end.code), shf_error_name(code)) << result.end.text;
    EXPECT_EQ(result.end.offset, offset) << result.end.text;
    return result;
}

// Expects the proven end every way.
inline ShardResult expect_read(std::string_view bytes, const Options& options = {}) {
    ShardResult result = read_every_way(bytes, options);
    EXPECT_EQ(result.end.code, SHF_OK) << result.end.text;
    return result;
}

}  // namespace shf::test
