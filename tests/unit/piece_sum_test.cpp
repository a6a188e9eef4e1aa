// The checksum of pieces of the cache: whatever the processor has, it is the one that other
// machines have written.
#include "cache/piece_sum.h"

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <xxhash.h>

#include <cstdint>
#include <initializer_list>
#include <span>
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
    const auto sum_of = [](shf::PieceSum sum, std::initializer_list<std::span<uint8_t>> parts) {
        std::vector<iovec> places;
        for (const std::span<uint8_t> part : parts) places.push_back({part.data(), part.size()});
        return sum(places.data(), places.size());
    };
    for (const shf::PieceSum sum : shf::piece_sums())
        for (const size_t size : {0UL, 1UL, 15UL, 16UL, 17UL, 128UL, 129UL, 240UL, 241UL, 1023UL,
                                  1024UL, 1025UL, 4095UL, 65535UL, 65536UL, 65537UL})
            for (const size_t start : {0UL, 1UL, 13UL, 64UL}) {
                const std::span piece(bytes.data() + start, size);
                const uint64_t wanted = XXH3_64bits(piece.data(), size);
                EXPECT_EQ(sum_of(sum, {piece}), wanted) << size << " bytes from " << start;
                // In several places: other functions of xxHash.
                std::vector<uint8_t> front(piece.begin(), piece.begin() + size / 3);
                EXPECT_EQ(sum_of(sum, {front, piece.subspan(size / 3)}), wanted) << size;
                EXPECT_EQ(sum_of(sum, {front, piece.subspan(size / 3, size / 2 - size / 3),
                                       piece.subspan(size / 2)}),
                          wanted)
                    << size;
            }
    // And of what is used.
    const std::vector<uint8_t> digits = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    EXPECT_EQ(shf::piece_sum(digits), XXH3_64bits("123456789", 9));
}

}  // namespace
