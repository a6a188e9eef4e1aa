// Which samples the user has had, and where a saved stream takes the others again.
#include "stream/taken_samples.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace shf::test {
namespace {

using Runs = std::vector<uint64_t>;

constexpr LanePlace first{0, 3}, second{0, 5};

// The lanes 3 and 5, of which so many samples have been taken.
std::shared_ptr<const Position> lanes(uint64_t of_first, uint64_t of_second) {
    Position position;
    position.lanes.resize(2);
    position.lanes[0].lane = first.lane;
    position.lanes[0].taken = of_first;
    position.lanes[1].lane = second.lane;
    position.lanes[1].taken = of_second;
    return std::make_shared<const Position>(std::move(position));
}

// Samples of the two lanes in turn, with a position before every fourth.
void take(TakenSamples& taken, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t number = taken.count();
        if (number % 4 == 0) taken.stand_at(lanes(number / 2, number / 2));
        EXPECT_EQ(taken.take(number % 2 == 0 ? first : second).number, number);
    }
}

std::vector<HandedOut> whole(const std::vector<uint64_t>& numbers) {
    std::vector<HandedOut> all;
    for (const uint64_t number : numbers) all.push_back({.number = number});
    return all;
}

void expect_lane(const LaneState& lane, uint64_t taken, uint64_t skip, const Runs& runs) {
    EXPECT_EQ(lane.taken, taken);
    EXPECT_EQ(lane.skip, skip);
    EXPECT_EQ(lane.waiting_and_given, runs);
}

TEST(TakenSamples, position_of_the_first_that_waits) {
    TakenSamples taken(false);
    take(taken, 12);
    Position position = taken.position(false);
    expect_lane(position.lanes[0], 0, 0, {});
    expect_lane(position.lanes[1], 0, 0, {});
    // 0 2 4 6 8 10 are of the first lane. 5 waits, and behind it 9 and 11.
    taken.hand_out(whole({0, 1, 2, 3, 6}));
    taken.hand_out(whole({4, 7, 8, 10}));
    position = taken.position(false);
    expect_lane(position.lanes[0], 2, 1, {0, 3});
    expect_lane(position.lanes[1], 2, 0, {1, 1});
    // Without what was handed out last.
    position = taken.position(true);
    expect_lane(position.lanes[0], 2, 0, {1, 1});
    expect_lane(position.lanes[1], 2, 0, {});
    taken.hand_out(whole({5, 9, 11}));
    position = taken.position(false);
    expect_lane(position.lanes[0], 4, 2, {});
    expect_lane(position.lanes[1], 4, 2, {});
    position = taken.position(true);
    expect_lane(position.lanes[0], 2, 1, {0, 3});
    expect_lane(position.lanes[1], 2, 0, {1, 1});
    EXPECT_EQ(taken.count(), 12U);
}

TEST(TakenSamples, what_has_no_row_does_not_wait) {
    TakenSamples taken(false);
    take(taken, 4);
    const std::vector<uint64_t> bad = {0, 2};
    taken.leave_out(bad);
    Position position = taken.position(false);
    expect_lane(position.lanes[0], 0, 1, {0, 1});
    expect_lane(position.lanes[1], 0, 0, {});
    taken.hand_out(whole({1, 3}));
    position = taken.position(false);
    expect_lane(position.lanes[0], 0, 2, {});
    expect_lane(position.lanes[1], 0, 2, {});
}

TEST(TakenSamples, resumes_where_some_were_given) {
    TakenSamples taken(false);
    taken.restore({{first, {2, 1, 1, 2}}, {second, {0, 1}}}, {});
    Position position = taken.before_all(*lanes(7, 7));
    expect_lane(position.lanes[0], 7, 0, {2, 1, 1, 2});
    expect_lane(position.lanes[1], 7, 0, {0, 1});
    taken.stand_at(lanes(7, 7));
    std::vector<bool> given;
    for (int i = 0; i < 4; ++i) {
        given.push_back(taken.take(first).given);
        given.push_back(taken.take(second).given);
    }
    EXPECT_EQ(given, (std::vector<bool>{false, true, false, false, true, false, false, false}));
    // The user has had none of them since; what comes after them is as it was.
    position = taken.position(false);
    expect_lane(position.lanes[0], 7, 0, {2, 1, 1, 2});
    expect_lane(position.lanes[1], 7, 0, {0, 1});
    taken.hand_out(whole({0, 2}));
    position = taken.position(false);
    expect_lane(position.lanes[0], 7, 2, {0, 1, 1, 2});
    expect_lane(position.lanes[1], 7, 1, {});
    for (const bool was : {true, true, false}) EXPECT_EQ(taken.take(first).given, was);
    position = taken.position(false);
    expect_lane(position.lanes[0], 7, 2, {0, 1, 1, 2});
}

TEST(TakenSamples, windows_begin_where_the_sequence_stood) {
    TakenSamples taken(true);
    taken.restore({{first, {0, 1}}}, {{first, 5, 1}, {second, 2, 3}});
    // Saved again before anything was taken: the documents that were begun are still begun.
    const Position before = taken.before_all(*lanes(0, 0));
    expect_lane(before.lanes[0], 0, 0, {0, 1});
    ASSERT_EQ(before.lanes[0].begun_later.size(), 1U);
    EXPECT_EQ(before.lanes[0].begun_later[0].elements, 5U);
    ASSERT_EQ(before.lanes[1].begun_later.size(), 1U);
    EXPECT_EQ(before.lanes[1].begun_later[0].elements, 2U);
    EXPECT_EQ(before.lanes[1].begun_later[0].behind, 3U);
    std::vector<uint64_t> elements;
    for (uint64_t number = 0; number < 8; ++number) {
        if (number % 4 == 0) taken.stand_at(lanes(number / 2, number / 2));
        elements.push_back(taken.take(number % 2 == 0 ? first : second).elements);
    }
    EXPECT_EQ(elements, (std::vector<uint64_t>{0, 0, 5, 0, 0, 0, 0, 2}));
    // 0 was given before. Of 3 there are two parts.
    taken.hand_out({{.number = 3, .whole = false, .elements = 7}, {.number = 1}});
    taken.hand_out({{.number = 3, .whole = false, .elements = 4}});
    Position position = taken.position(false);
    expect_lane(position.lanes[0], 0, 0, {0, 1});
    EXPECT_EQ(position.lanes[0].begun_elements, 0U);
    ASSERT_EQ(position.lanes[0].begun_later.size(), 1U);
    EXPECT_EQ(position.lanes[0].begun_later[0].behind, 1U);
    EXPECT_EQ(position.lanes[0].begun_later[0].elements, 5U);
    expect_lane(position.lanes[1], 0, 0, {0, 1});
    ASSERT_EQ(position.lanes[1].begun_later.size(), 2U);
    EXPECT_EQ(position.lanes[1].begun_later[0].behind, 1U);
    EXPECT_EQ(position.lanes[1].begun_later[0].elements, 11U);
    EXPECT_EQ(position.lanes[1].begun_later[1].behind, 3U);
    EXPECT_EQ(taken.position(true).lanes[1].begun_later[0].elements, 7U);
    // The next window, once all of this one was given.
    taken.hand_out({{.number = 2}, {.number = 3, .whole = true, .elements = 1}});
    position = taken.position(false);
    expect_lane(position.lanes[0], 2, 0, {});
    expect_lane(position.lanes[1], 2, 0, {});
    ASSERT_EQ(position.lanes[1].begun_later.size(), 1U);
    EXPECT_EQ(position.lanes[1].begun_later[0].behind, 1U);
    position = taken.position(true);
    expect_lane(position.lanes[1], 0, 0, {0, 1});
    EXPECT_EQ(position.lanes[1].begun_later[0].elements, 11U);
}

}  // namespace
}  // namespace shf::test
