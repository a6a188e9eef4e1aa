// Whether the order is as random as the theory says. Seeds are fixed, so each test either passes
// always or never; the limits are where one true random order in ten thousand would end up.
#include "core/options.h"
#include "order/plan.h"
#include "order/shuffle_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace {

using shf::Options;
using shf::Plan;
using shf::ShuffleBuffer;

constexpr double z_limit = 3.719;  // P(|normal| > z) = 2 / 10,000

// The chi-squared quantile that belongs to a normal one (Wilson and Hilferty, PNAS 1931).
double chi_squared(double freedom, double z) {
    const double part = 2 / (9 * freedom);
    return freedom * std::pow(1 - part + z * std::sqrt(part), 3);
}

// Counts differ from what is expected as much as chance makes them differ: neither more nor less.
void expect_fits(const std::vector<uint64_t>& counts, const std::vector<double>& expected,
                 double freedom) {
    double sum = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
        ASSERT_GE(expected[i], 5) << "too few for a chi-squared test";
        const double off = static_cast<double>(counts[i]) - expected[i];
        sum += off * off / expected[i];
    }
    EXPECT_LT(sum, chi_squared(freedom, z_limit)) << "of " << freedom << " degrees of freedom";
    EXPECT_GT(sum, chi_squared(freedom, -z_limit)) << "of " << freedom << " degrees of freedom";
}

void expect_even(const std::vector<uint64_t>& counts, uint64_t all) {
    const double each = static_cast<double>(all) / static_cast<double>(counts.size());
    expect_fits(counts, std::vector<double>(counts.size(), each),
                static_cast<double>(counts.size() - 1));
}

Options options_of(uint64_t seed, uint64_t lanes = 1) {
    Options options;
    options.seed = seed;
    options.lanes = lanes;
    options.shuffle_shards = true;
    return options;
}

std::vector<uint64_t> permutation(uint64_t seed, uint64_t epoch, uint64_t shards) {
    Plan plan(options_of(seed), shards);
    std::vector<uint64_t> order;
    for (uint64_t turn = 0; turn < shards; ++turn) order.push_back(plan.shard(epoch, 0, turn));
    return order;
}

// ---- Shards -------------------------------------------------------------------------------------

// All 120 orders of five shards come equally often: over epochs of one seed, and over seeds.
TEST(ShardPermutation, every_order_is_equally_likely) {
    constexpr uint64_t runs = 24000;
    for (const bool over_seeds : {false, true}) {
        std::map<std::vector<uint64_t>, uint64_t> seen;
        for (uint64_t i = 0; i < runs; ++i)
            ++seen[permutation(over_seeds ? i : 1, over_seeds ? 1 : i, 5)];
        std::vector<uint64_t> counts;
        for (const auto& [order, count] : seen) counts.push_back(count);
        ASSERT_EQ(counts.size(), 120U);
        expect_even(counts, runs);
    }
}

// Of many shards, each part of the list comes equally often into each part of the epoch.
TEST(ShardPermutation, every_shard_comes_everywhere) {
    constexpr uint64_t shards = 1000, parts = 10, epochs = 500;
    std::vector<uint64_t> counts(parts * parts);
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
        const auto order = permutation(7, epoch, shards);
        for (uint64_t place = 0; place < shards; ++place)
            ++counts[place * parts / shards * parts + order[place] * parts / shards];
    }
    // The sums of rows and columns are fixed, which leaves this many degrees of freedom.
    const double each = static_cast<double>(shards * epochs) / static_cast<double>(parts * parts);
    expect_fits(counts, std::vector<double>(counts.size(), each), (parts - 1) * (parts - 1));
}

// Two orders have one shard in the same place on average, and places do not go together.
TEST(ShardPermutation, seeds_and_epochs_have_nothing_in_common) {
    constexpr uint64_t shards = 500, pairs = 400;
    const auto compare = [&](const auto& first, const auto& second) {
        double matches = 0, correlation = 0;
        for (uint64_t i = 0; i < pairs; ++i) {
            const auto a = first(i), b = second(i);
            const double middle = (shards - 1) / 2.0, variance = (shards * shards - 1.0) / 12;
            double sum = 0;
            for (uint64_t place = 0; place < shards; ++place) {
                matches += a[place] == b[place] ? 1 : 0;
                sum += (static_cast<double>(a[place]) - middle) *
                       (static_cast<double>(b[place]) - middle);
            }
            correlation += sum / (shards * variance);
        }
        EXPECT_NEAR(matches, pairs, z_limit * std::sqrt(pairs));
        EXPECT_NEAR(correlation, 0, z_limit * std::sqrt(pairs / (shards - 1.0)));
    };
    const auto of = [&](uint64_t seed, uint64_t epoch) { return permutation(seed, epoch, shards); };
    compare([&](uint64_t i) { return of(i, 0); }, [&](uint64_t i) { return of(i + 1, 0); });
    compare([&](uint64_t i) { return of(9, i); }, [&](uint64_t i) { return of(9, i + 1); });
    compare([&](uint64_t i) { return of(i, i + 1); }, [&](uint64_t i) { return of(i + 1, i); });
}

// ---- Samples of a lane --------------------------------------------------------------------------

// The places at which samples leave a lane's buffer.
std::vector<uint64_t> places(uint64_t samples, uint64_t size, uint64_t seed, uint64_t epoch,
                             uint32_t lane) {
    ShuffleBuffer<uint64_t> buffer(size);
    buffer.begin(seed, epoch, lane);
    std::vector<uint64_t> place(samples);
    uint64_t put = 0;
    for (uint64_t taken = 0; taken < samples; ++taken) {
        while (put < samples && !buffer.full()) buffer.put(put++);
        place[buffer.draw()] = taken;
    }
    return place;
}

// A sample that came into a buffer of N is in the next draw with probability 1 / N, and so on: it
// waits k draws with probability (1 - 1/N)^(k-1) / N. One sample of each lane, so that they are
// independent.
TEST(LaneShuffle, samples_wait_as_theory_says) {
    struct Setting {
        uint64_t size, lanes;
    };
    for (const auto& [size, lanes] : {Setting{2, 20000}, Setting{10, 20000}, Setting{100, 4000}}) {
        SCOPED_TRACE(size);
        const uint64_t number = 2 * size, samples = 12 * size;
        // Bins of about equal weight; the last one has all that is longer.
        const double stay = 1 - 1 / static_cast<double>(size);
        std::vector<uint64_t> ends;
        for (uint64_t k = 1; ends.size() < 20 && k < 8 * size; ++k)
            if (1 - std::pow(stay, static_cast<double>(k)) >=
                static_cast<double>(ends.size() + 1) / 21)
                ends.push_back(k);
        if (size == 2) ends = {1, 2, 3, 4, 5, 6, 7, 8};
        std::vector<uint64_t> counts(ends.size() + 1);
        std::vector<double> expected;
        double before = 0;
        for (const uint64_t end : ends) {
            const double until = 1 - std::pow(stay, static_cast<double>(end));
            expected.push_back((until - before) * static_cast<double>(lanes));
            before = until;
        }
        expected.push_back((1 - before) * static_cast<double>(lanes));
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            // It comes in before draw number - (size - 1).
            const uint64_t place = places(samples, size, 3, 1, lane)[number];
            const uint64_t wait = place - (number - (size - 1)) + 1;
            ++counts[static_cast<size_t>(std::lower_bound(ends.begin(), ends.end(), wait) -
                                         ends.begin())];
        }
        expect_fits(counts, expected, static_cast<double>(counts.size() - 1));
    }
}

// So samples are moved by N(1 - 1/N)^N * 2 places on average, 2N/e for a large N; the mean of the
// absolute value of a geometric number minus its mean.
TEST(LaneShuffle, samples_move_as_far_as_theory_says) {
    for (const uint64_t size : {10U, 100U, 1000U}) {
        const uint64_t samples = 400 * size;
        const auto place = places(samples, size, 5, 0, 0);
        double sum = 0, moved = 0;
        uint64_t counted = 0;
        for (uint64_t i = 2 * size; i < samples - 20 * size; ++i, ++counted) {
            const double by = static_cast<double>(place[i]) - static_cast<double>(i);
            sum += by;
            moved += std::abs(by);
        }
        const auto n = static_cast<double>(size), count = static_cast<double>(counted);
        EXPECT_NEAR(sum / count, 0, z_limit * n / std::sqrt(count));
        EXPECT_NEAR(moved / count, 2 * n * std::pow(1 - 1 / n, n), z_limit * n / std::sqrt(count));
    }
}

// What two lanes, two epochs or two seeds do to a sample does not go together.
TEST(LaneShuffle, keys_have_nothing_in_common) {
    constexpr uint64_t samples = 100000, size = 50;
    const auto reference = places(samples, size, 11, 4, 2);
    const uint64_t others[][3] = {{12, 4, 2}, {11, 5, 2}, {11, 4, 3}, {11, 2, 4}, {4, 11, 2}};
    for (const auto& [seed, epoch, lane] : others) {
        const auto place = places(samples, size, seed, epoch, static_cast<uint32_t>(lane));
        double sum = 0;
        for (uint64_t i = 0; i < samples; ++i)
            sum += (static_cast<double>(place[i]) - static_cast<double>(i)) *
                   (static_cast<double>(reference[i]) - static_cast<double>(i));
        const double variance = static_cast<double>(size * (size - 1));
        EXPECT_NEAR(sum / (variance * samples), 0, z_limit / std::sqrt(samples));
    }
}

// ---- Resampling ---------------------------------------------------------------------------------

Options resampling(uint64_t seed, uint64_t lanes) {
    Options options = options_of(seed, lanes);
    options.resample = true;
    return options;
}

TEST(Resampling, draws_every_shard_equally_often) {
    constexpr uint64_t shards = 100, lanes = 8, epochs = 200;
    Plan plan(resampling(2, lanes), shards);
    std::vector<uint64_t> counts(shards);
    uint64_t all = 0;
    for (uint64_t epoch = 0; epoch < epochs; ++epoch)
        for (uint32_t lane = 0; lane < lanes; ++lane)
            for (uint64_t turn = 0; turn < plan.shards_of(lane); ++turn, ++all)
                ++counts[plan.shard(epoch, lane, turn)];
    expect_even(counts, all);
}

// All pairs of shards come equally often: from two lanes, one after another in a lane, in two
// epochs, and with two seeds.
TEST(Resampling, draws_are_independent) {
    constexpr uint64_t shards = 10, draws = 20000;
    Plan plan(resampling(3, 4), shards), other(resampling(4, 4), shards);
    const auto count_pairs = [&](const auto& pair_of) {
        std::vector<uint64_t> counts(shards * shards);
        for (uint64_t i = 0; i < draws; ++i) {
            const auto [first, second] = pair_of(i);
            ++counts[first * shards + second];
        }
        expect_even(counts, draws);
    };
    using Two = std::pair<uint64_t, uint64_t>;
    count_pairs([&](uint64_t i) { return Two{plan.shard(i, 0, 0), plan.shard(i, 1, 0)}; });
    count_pairs([&](uint64_t i) { return Two{plan.shard(i, 2, 1), plan.shard(i, 3, 1)}; });
    count_pairs([&](uint64_t i) { return Two{plan.shard(i, 0, 0), plan.shard(i, 0, 1)}; });
    count_pairs([&](uint64_t i) {
        return Two{plan.shard(2 * i, 1, 0), plan.shard(2 * i + 1, 1, 0)};
    });
    count_pairs([&](uint64_t i) { return Two{plan.shard(i, 0, 0), other.shard(i, 0, 0)}; });
    count_pairs([&](uint64_t i) { return Two{plan.shard(i, 1, 2), plan.shard(i, 2, 1)}; });
}

}  // namespace
