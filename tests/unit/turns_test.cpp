// Whose turn it is.
#include "order/turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using shf::Turns;

std::vector<size_t> take(Turns& turns, int count) {
    std::vector<size_t> lanes;
    for (int i = 0; i < count; ++i) {
        lanes.push_back(turns.front().lane);
        turns.took();
    }
    return lanes;
}

TEST(Turns, one_from_each_lane_in_turn) {
    Turns turns;
    for (size_t lane : {2U, 0U, 1U}) turns.add({0, 0, lane});
    EXPECT_EQ(take(turns, 7), (std::vector<size_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(Turns, nobody_means_empty) {
    Turns turns;
    EXPECT_TRUE(turns.empty());
    turns.add({3, 0, 0});
    EXPECT_FALSE(turns.empty());
    turns.take(0);
    EXPECT_TRUE(turns.empty());
}

// Lanes that were merged from consumers standing in different rounds catch up first.
TEST(Turns, a_lane_that_is_behind_comes_first) {
    Turns turns;
    turns.add({0, 5, 0});
    turns.add({0, 3, 1});
    EXPECT_EQ(take(turns, 6), (std::vector<size_t>{1, 1, 0, 1, 0, 1}));
}

TEST(Turns, an_older_epoch_comes_first) {
    Turns turns;
    turns.add({1, 0, 0});
    turns.add({0, 1000, 1});
    EXPECT_EQ(take(turns, 3), (std::vector<size_t>{1, 1, 1}));
    EXPECT_EQ(turns.take(1).taken, 1003U);
    turns.add({1, 0, 1});
    EXPECT_EQ(turns.front().epoch, 1U);
    EXPECT_EQ(take(turns, 4), (std::vector<size_t>{0, 1, 0, 1}));
}

// A lane that is exhausted early moves to the next epoch and waits there; the others finish theirs.
TEST(Turns, a_short_lane_waits_in_the_next_epoch) {
    Turns turns;
    for (size_t lane = 0; lane < 3; ++lane) turns.add({0, 0, lane});
    std::vector<uint64_t> left = {3, 1, 2};
    std::vector<size_t> order;
    for (int i = 0; i < 9; ++i) {
        const auto turn = turns.front();
        if (turn.epoch == 1) break;
        if (left[turn.lane] == 0) {
            turns.take(turn.lane);
            turns.add({turn.epoch + 1, 0, turn.lane});
        } else {
            --left[turn.lane];
            order.push_back(turn.lane);
            turns.took();
        }
    }
    EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 0, 2, 0}));
    EXPECT_EQ(turns.front().epoch, 1U);
    EXPECT_EQ(turns.front().lane, 0U);
    EXPECT_EQ(turns.front().taken, 0U);
}

TEST(Turns, a_lane_that_leaves_is_not_asked_again) {
    Turns turns;
    for (size_t lane = 0; lane < 3; ++lane) turns.add({0, 0, lane});
    turns.took();  // 0
    turns.take(1);
    EXPECT_EQ(take(turns, 4), (std::vector<size_t>{2, 0, 2, 0}));
}

}  // namespace
