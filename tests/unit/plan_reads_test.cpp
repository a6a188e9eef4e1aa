// When each consumer is said to read which shard, compared with what real streams deliver, and the
// plan of a run over shards that are not there.
#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

struct PlanFree {
    void operator()(shf_plan* plan) const { shf_plan_free(plan); }
};
using PlanHandle = std::unique_ptr<shf_plan, PlanFree>;

struct Read {
    uint64_t shard, samples, first, last;
};

PlanHandle simulate(const std::vector<uint64_t>& samples, const Settings& settings,
                    int32_t expected = SHF_OK, const std::vector<uint64_t>& bytes = {}) {
    shf_options* options = shf_options_new();
    shf_error error = {};
    for (const auto& [name, value] : settings)
        EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
            << error.message;
    shf_plan* plan = nullptr;
    EXPECT_EQ(shf_plan_simulate(&plan, samples.data(), bytes.empty() ? nullptr : bytes.data(),
                                samples.size(), options, &error),
              expected)
        << error.message;
    shf_options_free(options);
    return PlanHandle(plan);
}

std::vector<Read> reads_of(const PlanHandle& plan, uint64_t consumer) {
    std::vector<Read> reads(10'000);
    static_assert(sizeof(Read) == 4 * sizeof(uint64_t));
    size_t count = 0;
    shf_error error = {};
    EXPECT_EQ(shf_plan_reads(plan.get(), consumer, &reads[0].shard, reads.size(), &count, &error),
              SHF_OK)
        << error.message;
    reads.resize(std::min(count, reads.size()));
    return reads;
}

const std::vector<uint64_t> counts = {40, 17, 60, 1, 33, 25, 48, 9, 52, 3, 30, 21};

class PlanReads : public testing::TestWithParam<Settings> {
  protected:
    PlanReads() { write_shards(directory, counts); }

    TempDirectory directory;
};

uint64_t number_in(const Settings& settings, const std::string& name, uint64_t fallback) {
    for (const auto& [known, value] : settings)
        if (known == name) return std::stoull(value);
    return fallback;
}

bool has(const Settings& settings, const std::string& name) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const auto& setting) { return setting.first == name; });
}

// What a consumer takes of a shard, in all readings of it.
struct OfShard {
    uint64_t samples = 0, first = UINT64_MAX, last = 0;
    void add(uint64_t more, uint64_t from, uint64_t to) {
        samples += more;
        first = std::min(first, from);
        last = std::max(last, to);
    }
};

TEST_P(PlanReads, are_those_of_real_streams) {
    const Settings settings = GetParam();
    const uint64_t ranks = number_in(settings, "world_size", 1);
    const uint64_t lanes = number_in(settings, "lanes", ranks);
    const bool shared = lanes % ranks != 0, shuffled = has(settings, "shuffle");
    const PlanHandle plan = simulate(counts, settings);
    for (uint64_t rank = 0; rank < ranks; ++rank) {
        std::map<uint64_t, OfShard> planned, delivered;
        uint64_t begun = 0;
        for (const Read& read : reads_of(plan, rank)) {
            EXPECT_LE(begun, read.first);  // in the order in which they begin
            EXPECT_LE(read.first, read.last);
            begun = read.first;
            planned[read.shard].add(read.samples, read.first, read.last);
        }
        Settings own = settings;
        own.emplace_back("rank", std::to_string(rank));
        // The plan counts without indexes, which even needs.
        own.emplace_back("write_index", "true");
        if (has(settings, "even")) {
            Client indexing(directory / "{000..011}.tar", {{"write_index", "true"}});
            EXPECT_EQ(indexing.keys().size(), 339U);
        }
        Client client(directory / "{000..011}.tar", own);
        const auto keys = client.keys();
        ASSERT_EQ(client.code, SHF_END) << client.message();
        for (uint64_t at = 0; at < keys.size(); ++at)
            delivered[std::stoull(keys[at].substr(1, 3))].add(1, at, at);
        for (const auto& [shard, real] : delivered) {
            SCOPED_TRACE("rank " + std::to_string(rank) + " shard " + std::to_string(shard));
            ASSERT_TRUE(planned.contains(shard));
            const OfShard& said = planned[shard];
            if (shuffled || shared) {
                EXPECT_LE(said.first, real.first);
                EXPECT_GE(said.samples, real.samples);
                EXPECT_TRUE(shuffled || said.last >= real.last);
            } else {
                EXPECT_EQ(said.samples, real.samples);
                EXPECT_EQ(said.first, real.first);
                EXPECT_EQ(said.last, real.last);
            }
        }
        uint64_t samples = 0;
        for (const auto& [shard, said] : planned) {
            samples += said.samples;
            EXPECT_TRUE(shuffled || shared || delivered.contains(shard)) << shard;
            EXPECT_LT(said.last, keys.size());
        }
        // A shuffle buffer is read, too, of which nothing is taken.
        if (shuffled) {
            EXPECT_LE(samples, keys.size() + (number_in(settings, "shuffle", 0) - 1) * lanes);
        } else if (!shared) {
            EXPECT_EQ(samples, keys.size());
        }
        if (!has(settings, "limit")) {
            EXPECT_EQ(shf_plan_info(plan.get(), rank, SHF_PLAN_SAMPLES), keys.size());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Order, PlanReads,
    testing::Values(
        Settings{}, Settings{{"lanes", "5"}},
        Settings{{"lanes", "4"}, {"shuffle_shards", "true"}, {"seed", "3"}, {"epoch", "2"}},
        Settings{{"world_size", "3"}},
        Settings{{"world_size", "2"}, {"lanes", "6"}, {"shuffle_shards", "true"}},
        Settings{{"world_size", "3"}, {"lanes", "4"}},
        Settings{{"world_size", "2"}, {"lanes", "4"}, {"limit", "77"}},
        Settings{{"world_size", "2"}, {"lanes", "4"}, {"resample", "true"}, {"seed", "5"}},
        Settings{{"world_size", "2"}, {"lanes", "4"}, {"even", "drop"}},
        Settings{{"world_size", "3"}, {"lanes", "6"}, {"even", "pad"}, {"shuffle_shards", "true"}},
        Settings{{"lanes", "3"}, {"shuffle", "20"}},
        Settings{{"world_size", "2"}, {"lanes", "4"}, {"shuffle", "15"}, {"even", "drop"}}));

// A lane of 10, 5 and 20 samples with a buffer of 8: sample 7 is put in for the first one, and then
// one for each.
TEST(PlanReads, shuffle_buffers_are_filled_first) {
    const PlanHandle plan = simulate({10, 5, 20}, {{"shuffle", "8"}});
    const auto reads = reads_of(plan, 0);
    ASSERT_EQ(reads.size(), 3U);
    const std::array<uint64_t, 3> first = {0, 3, 8}, last = {2, 7, 27};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(reads[i].shard, i);
        EXPECT_EQ(reads[i].first, first[i]);
        EXPECT_EQ(reads[i].last, last[i]);
    }
}

TEST(PlanReads, of_empty_shards) {
    const PlanHandle plan = simulate({0, 3, 0, 0, 2, 0}, {{"lanes", "2"}});
    uint64_t samples = 0;
    const auto reads = reads_of(plan, 0);
    for (const Read& read : reads) {
        samples += read.samples;
        EXPECT_LT(read.last, 5U);
    }
    EXPECT_EQ(reads.size(), 6U);
    EXPECT_EQ(samples, 5U);
    EXPECT_TRUE(reads_of(simulate({0, 0}, {}), 0).empty());
}

TEST(PlanSimulation, has_what_was_given) {
    const PlanHandle plan =
        simulate({10, 20, 30, 40}, {{"world_size", "2"}}, SHF_OK, {100, 200, 300, 400});
    EXPECT_EQ(shf_plan_shard_count(plan.get()), 4U);
    EXPECT_EQ(shf_plan_shard_info(plan.get(), 2, SHF_PLAN_SHARD_SAMPLES), 30U);
    EXPECT_EQ(shf_plan_shard_info(plan.get(), 2, SHF_PLAN_SHARD_BYTES), 300U);
    EXPECT_EQ(shf_plan_info(plan.get(), 1, SHF_PLAN_SAMPLES), 60U);
    EXPECT_EQ(shf_plan_info(plan.get(), 1, SHF_PLAN_BYTES), 600U);
    const PlanHandle unsized = simulate({10, 20}, {});
    EXPECT_EQ(shf_plan_shard_info(unsized.get(), 1, SHF_PLAN_SHARD_BYTES), UINT64_MAX);
    EXPECT_EQ(shf_plan_info(unsized.get(), 0, SHF_PLAN_BYTES), UINT64_MAX);
    shf_bytes text;
    shf_plan_text(unsized.get(), &text);
    EXPECT_NE(std::string(reinterpret_cast<const char*>(text.data), text.size)
                  .find("an epoch: 2 shards, 30 samples\n"),
              std::string::npos);
}

TEST(PlanSimulation, refuses_what_it_cannot_plan) {
    EXPECT_FALSE(simulate({}, {}, SHF_E_USAGE));
    EXPECT_FALSE(simulate({1, uint64_t{1} << 32}, {}, SHF_E_USAGE));
    EXPECT_FALSE(simulate({1}, {{"even", "drop"}, {"resample", "true"}}, SHF_E_USAGE));
    size_t count = 7;
    shf_error error = {};
    const auto refused = [&](const Settings& settings, uint64_t consumer) {
        return shf_plan_reads(simulate({5, 5}, settings).get(), consumer, nullptr, 0, &count,
                              &error);
    };
    EXPECT_EQ(refused({}, 0), SHF_OK);
    EXPECT_EQ(count, 2U);
    EXPECT_EQ(refused({}, 1), SHF_E_USAGE);
    EXPECT_EQ(count, 0U);
    EXPECT_EQ(refused({{"epoch_samples", "5"}}, 0), SHF_E_USAGE);
    EXPECT_EQ(refused({{"select_keys", "a*"}}, 0), SHF_E_USAGE);
    EXPECT_NE(std::string(error.message).find("select_keys"), std::string::npos) << error.message;
    EXPECT_EQ(shf_plan_reads(nullptr, 0, nullptr, 0, &count, &error), SHF_E_USAGE);
}

}  // namespace
