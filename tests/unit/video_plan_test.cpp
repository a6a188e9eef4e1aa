// Which frames of a video are taken.
#include "video/video_plan.h"
#include "core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace {

using shf::VideoOptions;
using shf::VideoTimes;
using Pick = VideoOptions::Pick;
using Numbers = std::vector<uint64_t>;

VideoTimes regular(int64_t frames, int64_t rate) {
    VideoTimes times;
    for (int64_t i = 0; i < frames; ++i) times.at.push_back(1000 + i);
    times.end = 1000 + frames;
    times.unit_parts = rate;
    return times;
}

Numbers chosen(const VideoTimes& times, const VideoOptions& options, uint64_t random = 0) {
    const Numbers numbers = choose_frames(times, options, random);
    EXPECT_EQ(numbers.size(), count_frames(times, options));
    return numbers;
}

TEST(VideoPlan, takes_the_middles_of_equal_parts) {
    const VideoTimes times = regular(10, 25);
    EXPECT_EQ(chosen(times, {.pick = Pick::uniform, .count = 1}), Numbers({5}));
    EXPECT_EQ(chosen(times, {.pick = Pick::uniform, .count = 2}), Numbers({2, 7}));
    EXPECT_EQ(chosen(times, {.pick = Pick::uniform, .count = 5}), Numbers({1, 3, 5, 7, 9}));
    EXPECT_EQ(chosen(regular(3, 25), {.pick = Pick::uniform, .count = 5, .repeat = true}),
              Numbers({0, 0, 1, 2, 2}));
    EXPECT_THROW(chosen(regular(3, 25), {.pick = Pick::uniform, .count = 4}), shf::Error);
}

TEST(VideoPlan, takes_clips) {
    const VideoTimes times = regular(10, 25);
    EXPECT_EQ(chosen(times, {.pick = Pick::start, .count = 3, .stride = 4}), Numbers({0, 4, 8}));
    EXPECT_EQ(chosen(times, {.pick = Pick::middle, .count = 3, .stride = 2}), Numbers({2, 4, 6}));
    EXPECT_THROW(chosen(times, {.pick = Pick::middle, .count = 4, .stride = 4}), shf::Error);
    EXPECT_EQ(chosen(times, {.pick = Pick::random, .count = 4, .stride = 4, .repeat = true}),
              Numbers({0, 4, 8, 9}));
    std::set<uint64_t> starts;
    for (uint64_t random = 0; random < 200; ++random)
        starts.insert(chosen(times, {.pick = Pick::random, .count = 3, .stride = 2}, random)[0]);
    EXPECT_EQ(starts, std::set<uint64_t>({0, 1, 2, 3, 4, 5}));
}

TEST(VideoPlan, a_rate_takes_the_last_frames_at_or_before_its_moments) {
    EXPECT_EQ(chosen(regular(5, 5), {.rate_milli = 2000}), Numbers({0, 2}));
    EXPECT_EQ(chosen(regular(5, 5), {.rate_milli = 5000}), Numbers({0, 1, 2, 3, 4}));
    EXPECT_EQ(chosen(regular(2, 5), {.rate_milli = 12500}), Numbers({0, 0, 0, 1, 1}));
    VideoTimes uneven;
    uneven.at = {-50, 0, 900, 950, 2000};
    uneven.end = 2100;
    uneven.unit_parts = 1000;
    EXPECT_EQ(chosen(uneven, {.rate_milli = 1000}), Numbers({0, 3, 3}));
    EXPECT_EQ(chosen(uneven, {.pick = Pick::start, .count = 2, .stride = 2, .rate_milli = 1000}),
              Numbers({0, 3}));
}

TEST(VideoPlan, times_of_any_size_are_counted) {
    VideoTimes times;
    times.at = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max() - 1};
    times.end = std::numeric_limits<int64_t>::max();
    times.unit_count = std::numeric_limits<int32_t>::max();
    EXPECT_EQ(count_frames(times, {.rate_milli = 1'000'000}), uint64_t{1} << 62);
    EXPECT_EQ(chosen(times, {.pick = Pick::start, .count = 2, .rate_milli = 1'000'000}),
              Numbers({0, 0}));
    times.unit_count = 1;
    times.unit_parts = std::numeric_limits<int32_t>::max();
    EXPECT_GT(count_frames(times, {.rate_milli = 1}), uint64_t{1} << 20);
}

}  // namespace
