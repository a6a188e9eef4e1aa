// The generator behind every order.
#include "core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace {

using shf::Random;

std::vector<uint64_t> outputs(Random random, int count) {
    std::vector<uint64_t> values;
    for (int i = 0; i < count; ++i) values.push_back(random.next());
    return values;
}

// Fixed for ever: other numbers here would give every user another order.
TEST(Random, fixed_vectors) {
    EXPECT_EQ(outputs(Random(Random::shard_order, {0, 0}), 3),
              (std::vector<uint64_t>{0xf01a67aba8de031e, 0x012b79c5e02c5947, 0x75ce0b863f427e13}));
    EXPECT_EQ(outputs(Random(Random::sample_shuffle, {1, 2, 3}), 3),
              (std::vector<uint64_t>{0x3d066c6837f40a9b, 0xee8c3611a15d8163, 0x417b3e103df35f76}));
    EXPECT_EQ(outputs(Random(Random::resampling, {UINT64_MAX, 0, 7, 9}), 3),
              (std::vector<uint64_t>{0x5e64a879435abda8, 0x8bc920fe9c56065c, 0xb5e37d8ef52ea815}));
    Random random(Random::shard_order, {42, 1});
    std::vector<uint64_t> dice;
    for (int i = 0; i < 12; ++i) dice.push_back(random.below(6));
    EXPECT_EQ(dice, (std::vector<uint64_t>{4, 2, 5, 1, 1, 1, 0, 2, 4, 3, 4, 5}));
}

// SplitMix64 as published: the finalizer over a Weyl sequence.
TEST(Random, is_splitmix64) {
    const auto mix = [](uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    };
    const uint64_t gamma = 0x9e3779b97f4a7c15;
    Random random(Random::resampling, {});
    const uint64_t key = mix(Random::resampling);
    for (uint64_t i = 1; i <= 100; ++i) {
        EXPECT_EQ(random.next(), mix(key + i * gamma));
        EXPECT_EQ(random.drawn(), i);
    }
}

TEST(Random, keys_and_purposes_are_told_apart) {
    std::set<uint64_t> first;
    size_t count = 0;
    for (const auto purpose : {Random::shard_order, Random::sample_shuffle, Random::resampling})
        for (uint64_t a = 0; a < 40; ++a)
            for (uint64_t b = 0; b < 40; ++b, ++count) first.insert(Random(purpose, {a, b}).next());
    first.insert(Random(Random::shard_order, {1}).next());
    first.insert(Random(Random::shard_order, {1, 0, 0}).next());
    EXPECT_EQ(first.size(), count + 2);
}

TEST(Random, below_stays_below) {
    Random random(Random::shard_order, {5});
    for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
    for (const uint64_t bound : {uint64_t{2}, uint64_t{3}, uint64_t{1} << 63, UINT64_MAX})
        for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(bound), bound);
}

// Every number equally often, within five standard deviations.
TEST(Random, below_is_uniform) {
    constexpr int draws = 700000;
    std::array<int, 7> count{};
    Random random(Random::sample_shuffle, {99});
    for (int i = 0; i < draws; ++i) ++count[random.below(7)];
    const double expected = draws / 7.0, deviation = std::sqrt(draws * (1 / 7.0) * (6 / 7.0));
    for (const int n : count) EXPECT_NEAR(n, expected, 5 * deviation);
}

// 3/4 of 2^64 as bound: without rejection the lower half would come twice as often as the rest.
TEST(Random, below_rejects_the_surplus) {
    Random random(Random::sample_shuffle, {7});
    const uint64_t bound = uint64_t{3} << 62;
    int lowest_third = 0;
    constexpr int draws = 300000;
    for (int i = 0; i < draws; ++i) lowest_third += random.below(bound) < bound / 3 ? 1 : 0;
    EXPECT_NEAR(lowest_third, draws / 3.0, 5 * std::sqrt(draws * 2 / 9.0));
    EXPECT_GT(random.drawn(), uint64_t{draws});
}

}  // namespace
