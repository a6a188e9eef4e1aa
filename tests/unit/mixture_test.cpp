// The choice by weight: proportions, and that it depends on the seed and the number alone.
#include "order/mixture.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using shf::Error;
using shf::Mixture;

Mixture mixture(const std::vector<double>& weights, uint64_t seed = 0) {
    return {weights.size(), weights, seed};
}

// How often each part comes among so many samples.
std::vector<double> counts(const Mixture& mixture, const std::vector<bool>& ended, uint64_t draws) {
    std::vector<double> counts(ended.size());
    for (uint64_t i = 0; i < draws; ++i) ++counts[mixture.choose(i, ended)];
    return counts;
}

// Within five standard deviations, of which the seeds here are no exception.
void expect_shares(const std::vector<double>& counts, const std::vector<double>& shares) {
    double draws = 0, all = 0;
    for (const double count : counts) draws += count;
    for (const double share : shares) all += share;
    for (size_t i = 0; i < shares.size(); ++i) {
        const double share = shares[i] / all;
        EXPECT_NEAR(counts[i], draws * share, 5 * std::sqrt(draws * share * (1 - share))) << i;
    }
}

TEST(Mixture, keeps_the_proportions) {
    for (const std::vector<double>& weights : std::vector<std::vector<double>>{
             {3, 1}, {1, 1, 1}, {0.7, 0.2, 0.1}, {1e-3, 1}, {1e300, 3e300}, {5}})
        expect_shares(counts(mixture(weights, 3), std::vector<bool>(weights.size()), 200000),
                      weights);
}

TEST(Mixture, leaves_out_what_has_ended) {
    const std::vector<double> weights = {5, 3, 2, 1};
    expect_shares(counts(mixture(weights), {true, false, false, false}, 200000), {0, 3, 2, 1});
    expect_shares(counts(mixture(weights), {false, true, false, true}, 200000), {5, 0, 2, 0});
    expect_shares(counts(mixture(weights), {true, true, false, true}, 1000), {0, 0, 1, 0});
}

// So a run that goes on needs not know when an end was noticed.
TEST(Mixture, an_end_changes_only_the_samples_that_would_have_come_from_there) {
    const Mixture mix = mixture({5, 3, 2, 1}, 9);
    for (uint64_t i = 0; i < 20000; ++i) {
        const size_t part = mix.choose(i, std::vector<bool>(4));
        for (size_t other = 0; other < 4; ++other) {
            if (other == part) continue;
            std::vector<bool> ended(4);
            ended[other] = true;
            ASSERT_EQ(mix.choose(i, ended), part) << i;
        }
    }
}

TEST(Mixture, depends_on_the_seed_and_the_proportions) {
    const auto sequence = [](const Mixture& mix) {
        std::vector<size_t> parts;
        for (uint64_t i = 0; i < 100; ++i) parts.push_back(mix.choose(i, std::vector<bool>(2)));
        return parts;
    };
    EXPECT_EQ(sequence(mixture({3, 1})), sequence(mixture({0.75, 0.25})));
    EXPECT_EQ(sequence(mixture({2, 2})), sequence(Mixture(2, {}, 0)));
    EXPECT_NE(sequence(mixture({3, 1})), sequence(mixture({3, 1}, 1)));
    // The same on every machine.
    const std::vector<size_t> first(sequence(mixture({1, 1})));
    EXPECT_EQ(std::vector<size_t>(first.begin(), first.begin() + 16),
              (std::vector<size_t>{0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1}));
}

TEST(Mixture, names_weights_as_whole_numbers) {
    EXPECT_EQ(mixture({0.75, 0.25}).text(), "3:1");
    EXPECT_EQ(mixture({10, 20, 30}).text(), "1:2:3");
    EXPECT_EQ(Mixture(3, {}, 0).text(), "1:1:1");
}

TEST(Mixture, refuses_what_is_no_weight) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinite = std::numeric_limits<double>::infinity();
    for (const double bad : {0.0, -1.0, nan, infinite, 1e-30}) {
        try {
            (void)mixture({1, bad});
            ADD_FAILURE() << bad;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_USAGE);
            EXPECT_NE(error.fault().cause.find("weight 1 "), std::string::npos);
            EXPECT_FALSE(error.fault().help.empty());
        }
    }
    EXPECT_THROW(Mixture(0, {}, 0), Error);
    EXPECT_THROW(Mixture(1025, {}, 0), Error);
    EXPECT_EQ(Mixture(1024, {}, 0).choose(0, std::vector<bool>(1024, false)) < 1024, true);
}

}  // namespace
