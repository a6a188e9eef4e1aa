// The checksum of pieces of the cache: whatever the processor has, it is the one that other
// machines have written.
#include "cache/piece_sum.h"

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdint>
#include <vector>

namespace {

TEST(PieceSum, is_the_same_on_all_processors) {
    std::vector<uint8_t> bytes(70000);
    uint32_t state = 1;
    for (uint8_t& byte : bytes) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<uint8_t>(state >> 24);
    }
    ASSERT_FALSE(shf::piece_sums().empty());
    for (const shf::PieceSum sum : shf::piece_sums())
        for (const size_t size : {0UL, 1UL, 15UL, 16UL, 17UL, 128UL, 129UL, 240UL, 241UL, 1023UL,
                                  1024UL, 1025UL, 4095UL, 65535UL, 65536UL, 65537UL})
            for (const size_t start : {0UL, 1UL, 13UL, 64UL})
                EXPECT_EQ(sum(bytes.data() + start, size), XXH3_64bits(bytes.data() + start, size))
                    << size << " bytes from " << start;
    // And of what is used.
    const std::vector<uint8_t> digits = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    EXPECT_EQ(shf::piece_sum(digits), XXH3_64bits("123456789", 9));
}

}  // namespace
