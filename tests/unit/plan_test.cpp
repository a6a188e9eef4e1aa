// Which consumer reads which shard when.
#include "order/plan.h"
#include "core/error.h"

#include "../sanitizers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using shf::Options;
using shf::Plan;

using Settings = std::initializer_list<std::pair<const char*, const char*>>;

Options options(Settings settings) {
    Options values;
    for (const auto& [name, value] : settings) values.set(name, value);
    return values;
}

// The shards of an epoch as lanes of one consumer read them: shard j of the permuted list.
std::vector<uint64_t> shard_order(Plan& plan, uint64_t epoch, uint64_t shards) {
    std::vector<uint64_t> order(shards, UINT64_MAX);
    for (uint32_t lane = 0; lane < plan.lanes(); ++lane)
        for (uint64_t turn = 0; turn < plan.shards_of(lane); ++turn)
            order.at(lane + turn * plan.lanes()) = plan.shard(epoch, lane, turn);
    return order;
}

std::vector<uint64_t> sorted(std::vector<uint64_t> values) {
    std::sort(values.begin(), values.end());
    return values;
}

std::vector<uint64_t> numbers(uint64_t count) {
    std::vector<uint64_t> values(count);
    std::iota(values.begin(), values.end(), uint64_t{0});
    return values;
}

// Fixed for ever: with another order here every user would get another order.
TEST(Plan, fixed_permutation) {
    Plan plan(options({{"shuffle_shards", "true"}, {"seed", "1"}}), 10);
    EXPECT_EQ(shard_order(plan, 0, 10), (std::vector<uint64_t>{2, 8, 3, 9, 6, 0, 4, 7, 1, 5}));
    EXPECT_EQ(shard_order(plan, 1, 10), (std::vector<uint64_t>{4, 7, 9, 1, 5, 6, 8, 0, 2, 3}));
}

TEST(Plan, fixed_resampling) {
    Plan plan(options({{"resample", "true"}, {"seed", "1"}, {"lanes", "2"}}), 10);
    EXPECT_EQ(shard_order(plan, 0, 10), (std::vector<uint64_t>{3, 3, 4, 7, 7, 5, 2, 7, 5, 3}));
}

TEST(Plan, list_order_without_shuffle) {
    for (const char* lanes : {"1", "3", "8"}) {
        Plan plan(options({{"lanes", lanes}, {"seed", "7"}}), 20);
        for (const uint64_t epoch : {0U, 1U, 99U})
            EXPECT_EQ(shard_order(plan, epoch, 20), numbers(20));
    }
}

TEST(Plan, epochs_are_different_permutations) {
    Plan plan(options({{"shuffle_shards", "true"}, {"seed", "3"}, {"lanes", "4"}}), 100);
    std::vector<std::vector<uint64_t>> orders;
    for (uint64_t epoch = 0; epoch < 20; ++epoch) {
        orders.push_back(shard_order(plan, epoch, 100));
        EXPECT_EQ(sorted(orders.back()), numbers(100));
        for (uint64_t before = 0; before < epoch; ++before)
            EXPECT_NE(orders[before], orders.back());
    }
    // In any order of asking, and from another object.
    Plan again(options({{"shuffle_shards", "true"}, {"seed", "3"}, {"lanes", "4"}}), 100);
    for (const uint64_t epoch : {19U, 0U, 7U, 8U, 7U, 0U})
        EXPECT_EQ(shard_order(again, epoch, 100), orders[epoch]);
    Plan other(options({{"shuffle_shards", "true"}, {"seed", "4"}, {"lanes", "4"}}), 100);
    EXPECT_NE(shard_order(other, 0, 100), orders[0]);
}

// The permuted list does not depend on who reads it.
TEST(Plan, the_permutation_is_the_same_for_any_split) {
    Plan one(options({{"shuffle_shards", "true"}, {"seed", "3"}}), 64);
    const auto order = shard_order(one, 5, 64);
    for (const char* lanes : {"2", "16", "64"}) {
        Plan plan(options({{"shuffle_shards", "true"}, {"seed", "3"}, {"lanes", lanes}}), 64);
        EXPECT_EQ(shard_order(plan, 5, 64), order);
    }
}

TEST(Plan, consumers_share_the_lanes) {
    for (const uint64_t ranks : {1U, 2U, 4U})
        for (const uint64_t workers : {1U, 3U}) {
            std::vector<uint64_t> lanes, shards;
            for (uint64_t rank = 0; rank < ranks; ++rank)
                for (uint64_t worker = 0; worker < workers; ++worker) {
                    Options values = options({{"lanes", "24"}, {"shuffle_shards", "true"}});
                    values.world_size = ranks;
                    values.rank = rank;
                    values.num_workers = workers;
                    values.worker = worker;
                    Plan plan(values, 77);
                    EXPECT_EQ(plan.consumers(), ranks * workers);
                    EXPECT_EQ(plan.consumer(), rank * workers + worker);
                    const auto own = plan.own_lanes();
                    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
                    for (const uint32_t lane : own) {
                        EXPECT_EQ(lane % plan.consumers(), plan.consumer());
                        lanes.push_back(lane);
                        for (uint64_t turn = 0; turn < plan.shards_of(lane); ++turn)
                            shards.push_back(plan.shard(0, lane, turn));
                    }
                }
            EXPECT_EQ(sorted(lanes), numbers(24));
            EXPECT_EQ(sorted(shards), numbers(77));
        }
}

TEST(Plan, lanes_default_to_the_consumers) {
    Plan plan(options({{"world_size", "3"}, {"num_workers", "2"}, {"rank", "2"}, {"worker", "1"}}),
              6);
    EXPECT_EQ(plan.lanes(), 6U);
    EXPECT_EQ(plan.own_lanes(), std::vector<uint32_t>{5});
    EXPECT_EQ(plan.shard(0, 5, 0), 5U);
}

TEST(Plan, more_lanes_than_shards) {
    Plan plan(options({{"lanes", "8"}}), 3);
    std::vector<uint64_t> counts;
    for (uint32_t lane = 0; lane < 8; ++lane) counts.push_back(plan.shards_of(lane));
    EXPECT_EQ(counts, (std::vector<uint64_t>{1, 1, 1, 0, 0, 0, 0, 0}));
}

TEST(Plan, resampling_draws_equally_much_for_every_lane) {
    Plan plan(options({{"resample", "true"}, {"lanes", "4"}, {"seed", "2"}}), 10);
    std::vector<uint64_t> seen(10);
    for (uint32_t lane = 0; lane < 4; ++lane) {
        EXPECT_EQ(plan.shards_of(lane), 3U);
        for (uint64_t epoch = 0; epoch < 1000; ++epoch)
            for (uint64_t turn = 0; turn < 3; ++turn) ++seen.at(plan.shard(epoch, lane, turn));
    }
    for (const uint64_t times : seen)
        EXPECT_NEAR(static_cast<double>(times), 1200, 165);  // 5 sigma
    EXPECT_NE(plan.shard(0, 0, 0) * 1000 + plan.shard(0, 0, 1) * 100 + plan.shard(0, 0, 2) * 10 +
                  plan.shard(1, 0, 0),
              plan.shard(0, 1, 0) * 1000 + plan.shard(0, 1, 1) * 100 + plan.shard(0, 1, 2) * 10 +
                  plan.shard(1, 1, 0));
}

TEST(Plan, epoch_samples_are_dealt_out_exactly) {
    for (const uint64_t total : {8U, 9U, 100U, 101U})
        for (const uint64_t consumers : {1U, 2U, 3U, 8U}) {
            uint64_t sum = 0, most = 0, least = UINT64_MAX;
            for (uint64_t rank = 0; rank < consumers; ++rank) {
                Options values;
                values.epoch_samples = total;
                values.world_size = consumers;
                values.rank = rank;
                const uint64_t share = Plan(values, 8).quota(values.epoch_samples);
                sum += share;
                most = std::max(most, share);
                least = std::min(least, share);
            }
            EXPECT_EQ(sum, total);
            EXPECT_LE(most - least, 1U);
        }
}

TEST(Plan, errors_say_what_to_do) {
    const struct {
        Settings settings;
        uint64_t shards;
        std::vector<const char*> texts;
    } cases[] = {
        {{{"rank", "2"}, {"world_size", "2"}},
         9,
         {"rank=2", "world_size=2", "from 0 to world_size - 1"}},
        {{{"worker", "1"}}, 9, {"worker=1", "num_workers=1", "help: "}},
        {{{"lanes", "9"}, {"world_size", "2"}, {"even", "drop"}},
         9,
         {"lanes=9", "2 consumers", "make lanes a multiple"}},
        {{{"world_size", "2"}, {"num_workers", "2"}},
         3,
         {"3 shards for 4 consumers", "more and smaller shards", "resample=true"}},
        {{}, 0, {"no shards", "at least one URL"}},
        {{{"resample", "true"}}, 0, {"no shards"}},
    };
    for (const auto& [settings, shards, texts] : cases) {
        try {
            Plan plan(options(settings), shards);
            ADD_FAILURE() << "accepted: " << texts[0];
        } catch (const shf::Error& error) {
            EXPECT_EQ(error.code(), SHF_E_USAGE);
            for (const char* text : texts)
                EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    }
    Plan(options({{"resample", "true"}, {"world_size", "64"}}),
         1);  // the neighbour that is accepted
    Plan(options({{"world_size", "4"}}), 4);
}

// Lanes are 32-bit numbers; more consumers than that must not share a lane in silence.
TEST(Plan, too_many_consumers_are_refused) {
    Options values = options({{"resample", "true"}});
    values.world_size = 16777216;
    values.num_workers = 255;
    values.rank = 16777215;
    values.worker = 254;
    EXPECT_EQ(Plan(values, 10).own_lanes(), std::vector<uint32_t>{16777216U * 255 - 1});
    values.num_workers = 256;
    try {
        Plan plan(values, 10);
        ADD_FAILURE() << "accepted";
    } catch (const shf::Error& error) {
        EXPECT_EQ(error.code(), SHF_E_USAGE);
        EXPECT_NE(std::string(error.what()).find("4294967296 consumers"), std::string::npos);
    }
}

TEST(Plan, a_million_shards_in_a_second) {
    const auto start = std::chrono::steady_clock::now();
    Plan plan(options({{"shuffle_shards", "true"}, {"lanes", "64"}}), 1000000);
    uint64_t sum = 0;
    for (uint32_t lane = 0; lane < 64; ++lane)
        for (uint64_t turn = 0; turn < plan.shards_of(lane); ++turn)
            sum += plan.shard(0, lane, turn);
    EXPECT_EQ(sum, uint64_t{1000000} * 999999 / 2);
#if !SANITIZED && defined(__OPTIMIZE__)
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
#else
    (void)start;
#endif
}

}  // namespace
