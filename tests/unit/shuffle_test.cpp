// The sample shuffle of a lane.
#include "order/shuffle_buffer.h"

#include "core/error.h"
#include "order/shuffle_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

namespace {

using shf::ShuffleBuffer;

// As a lane uses it: fill, then one out for one in, then the rest.
std::vector<int> shuffled(int count, uint64_t size, uint64_t seed, uint64_t epoch, uint32_t lane) {
    ShuffleBuffer<int> buffer(size);
    buffer.begin(seed, epoch, lane);
    std::vector<int> out;
    for (int i = 0; i < count;) {
        while (i < count && !buffer.full()) buffer.put(i++);
        out.push_back(buffer.draw());
    }
    while (!buffer.empty()) out.push_back(buffer.draw());
    return out;
}

std::vector<int> sorted(std::vector<int> values) {
    std::sort(values.begin(), values.end());
    return values;
}

std::vector<int> numbers(int count) {
    std::vector<int> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    return values;
}

// Fixed for ever, as the order of every user is.
TEST(ShuffleBuffer, fixed_vector) {
    EXPECT_EQ(shuffled(12, 4, 1, 2, 3), (std::vector<int>{0, 4, 1, 6, 5, 2, 9, 8, 3, 10, 11, 7}));
}

TEST(ShuffleBuffer, loses_nothing) {
    for (const uint64_t size : {1U, 2U, 7U, 100U, 1000U})
        for (const int count : {0, 1, 6, 100, 999})
            EXPECT_EQ(sorted(shuffled(count, size, 5, 0, 0)), numbers(count));
}

TEST(ShuffleBuffer, size_one_keeps_the_order) {
    EXPECT_EQ(shuffled(50, 1, 5, 0, 0), numbers(50));
}

TEST(ShuffleBuffer, the_key_decides) {
    const auto reference = shuffled(200, 50, 1, 2, 3);
    EXPECT_EQ(reference, shuffled(200, 50, 1, 2, 3));
    EXPECT_NE(reference, shuffled(200, 50, 2, 2, 3));
    EXPECT_NE(reference, shuffled(200, 50, 1, 3, 3));
    EXPECT_NE(reference, shuffled(200, 50, 1, 2, 4));
}

// Nothing comes out before the buffer has seen it, and what is drawn lies within its reach.
TEST(ShuffleBuffer, reaches_as_far_as_it_is_large) {
    const auto order = shuffled(1000, 64, 9, 0, 0);
    for (size_t t = 0; t < order.size(); ++t) EXPECT_LT(order[t], static_cast<int>(t) + 64);
}

// A buffer that holds everything is a uniform shuffle: each value in each place equally often.
TEST(ShuffleBuffer, whole_shuffle_is_uniform) {
    constexpr int count = 5, runs = 20000;
    int seen[count][count] = {};
    for (int run = 0; run < runs; ++run) {
        const auto order = shuffled(count, count, static_cast<uint64_t>(run), 0, 0);
        for (size_t place = 0; place < count; ++place) ++seen[place][order[place]];
    }
    const double expected = runs / 5.0, deviation = std::sqrt(runs * 0.2 * 0.8);
    for (const auto& place : seen)
        for (const int times : place) EXPECT_NEAR(times, expected, 5 * deviation);
}

TEST(ShuffleBuffer, holds_things_that_only_move) {
    ShuffleBuffer<std::unique_ptr<int>> buffer(3);
    for (int i = 0; i < 3; ++i) buffer.put(std::make_unique<int>(i));
    EXPECT_TRUE(buffer.full());
    int sum = 0;
    while (!buffer.empty()) sum += *buffer.draw();
    EXPECT_EQ(sum, 3);
}

// What lies in a buffer is told from its draws, wherever it stands: while it fills, in the middle,
// and while it empties.
TEST(ShuffleReplay, tells_every_slot) {
    for (const uint64_t size : {2U, 3U, 10U, 300U})
        for (const uint64_t count : {1U, 2U, 9U, 10U, 11U, 300U, 301U, 2000U}) {
            ShuffleBuffer<uint64_t> buffer(size), other(size);
            buffer.begin(size, count, 7);
            uint64_t put = 0;
            for (uint64_t taken = 0; taken < count; ++taken) {
                while (put < count && !buffer.full()) buffer.put(put++);
                const bool closed = put == count && !buffer.full();
                if (taken % 7 == 0 || count < 20) {
                    shf::ShuffleHistory history{size, put, taken, closed};
                    other.begin(size, count, 7);
                    other.restore(buffer.random().drawn(),
                                  shf::shuffle_slots(history, buffer.random()));
                    ShuffleBuffer<uint64_t> same = buffer;
                    while (!same.empty()) ASSERT_EQ(other.draw(), same.draw());
                    ASSERT_TRUE(other.empty());
                }
                buffer.draw();
            }
        }
}

TEST(ShuffleReplay, refuses_a_history_of_no_buffer) {
    ShuffleBuffer<uint64_t> buffer(10);
    buffer.begin(1, 2, 3);
    for (const shf::ShuffleHistory& history :
         {shf::ShuffleHistory{10, 5, 6, false}, shf::ShuffleHistory{10, 11, 0, false},
          shf::ShuffleHistory{10, 100, 5, false}, shf::ShuffleHistory{10, 20, 12, false},
          shf::ShuffleHistory{10, uint64_t{1} << 60, 0, true}})
        EXPECT_THROW((void)shf::shuffle_slots(history, buffer.random()), shf::Error);
}

}  // namespace
