// What a run is said to read, and the warnings before it.
#include "order/plan_report.h"

#include "../sanitizers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace {

using shf::KnownShards;
using shf::Options;
using shf::Plan;
using shf::PlanReport;

using Settings = std::initializer_list<std::pair<const char*, const char*>>;

Options options(Settings settings) {
    Options values;
    for (const auto& [name, value] : settings) values.set(name, value);
    return values;
}

KnownShards unindexed(uint64_t count) {
    return {.count = count,
            .samples = {},
            .bytes = {},
            .unknown = "0.tar: it has no index",
            .needs_index = false};
}
// Shards of these many samples, each of `size` bytes.
KnownShards indexed(std::vector<uint64_t> samples, uint64_t size = 1000) {
    std::vector<uint64_t> bytes;
    for (const uint64_t count : samples) bytes.push_back(count * size);
    return {.count = samples.size(),
            .samples = samples,
            .bytes = bytes,
            .unknown = {},
            .needs_index = false};
}

std::vector<std::string> warnings(const KnownShards& shards, Settings settings) {
    const PlanReport report(options(settings), shards);
    return {report.warnings().begin(), report.warnings().end()};
}
size_t lines(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(PlanReport, a_run_without_fault_has_no_warning) {
    const PlanReport report(options({}), unindexed(3));
    EXPECT_EQ(report.text(),
              "3 shards, 1 consumer (1 rank x 1 worker), 1 lane\n"
              "an epoch: 3 shards; samples are not known: 0.tar: it has no index\n"
              "rank 0 worker 0: 1 lane, 3 shards\n");
    EXPECT_TRUE(report.warnings().empty());
}

TEST(PlanReport, says_what_every_consumer_reads) {
    const PlanReport report(options({{"world_size", "2"}, {"num_workers", "2"}, {"lanes", "8"}}),
                            indexed({1000, 1000, 1000, 1000, 1234, 1000, 1000, 1000}, 2048));
    EXPECT_EQ(report.text(),
              "8 shards, 4 consumers (2 ranks x 2 workers), 8 lanes\n"
              "an epoch: 8 shards, 8,234 samples, 16.1 MiB\n"
              "each consumer: 2 shards, 2,000 to 2,234 samples\n"
              "rank 0 worker 0: 2 lanes, 2 shards, 2,234 samples, 4.4 MiB\n"
              "rank 0 worker 1: 2 lanes, 2 shards, 2,000 samples, 3.9 MiB\n"
              "rank 1 worker 0: 2 lanes, 2 shards, 2,000 samples, 3.9 MiB\n"
              "rank 1 worker 1: 2 lanes, 2 shards, 2,000 samples, 3.9 MiB\n"
              "warning: the parts of the consumers are unequal: 2,000 to 2,234 samples each; those "
              "with less end their epoch first, and may leave the others waiting for them; help: "
              "set even=drop or even=pad, give epoch_samples, or write equal shards, a multiple of "
              "4 of them\n");
    ASSERT_EQ(report.warnings().size(), 1U);
}

// The report and the run have one plan: what it says is what a consumer's plan gives.
TEST(PlanReport, shares_are_those_of_the_plans) {
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < 61; ++i) samples.push_back(10 + i * i);
    const Settings cases[] = {
        {},
        {{"lanes", "24"}},
        {{"lanes", "96"}, {"shuffle_shards", "true"}, {"seed", "5"}, {"epoch", "3"}},
        {{"resample", "true"}, {"seed", "5"}},
        {{"resample", "true"}, {"lanes", "96"}},
    };
    for (const Settings& settings : cases)
        for (const uint64_t ranks : {1U, 2U, 4U})
            for (const uint64_t workers : {1U, 3U}) {
                Options values = options(settings);
                values.world_size = ranks;
                values.num_workers = workers;
                const PlanReport report(values, indexed(samples));
                ASSERT_EQ(report.consumers(), ranks * workers);
                for (uint64_t consumer = 0; consumer < report.consumers(); ++consumer) {
                    values.rank = consumer / workers;
                    values.worker = consumer % workers;
                    Plan plan(values, samples.size());
                    uint64_t shards = 0, sum = 0;
                    for (const uint32_t lane : plan.own_lanes())
                        for (uint64_t turn = 0; turn < plan.shards_of(lane); ++turn, ++shards)
                            sum += samples[plan.shard(values.epoch, lane, turn)];
                    const PlanReport::Share share = report.share(consumer);
                    EXPECT_EQ(share.rank, values.rank);
                    EXPECT_EQ(share.worker, values.worker);
                    EXPECT_EQ(share.lanes, plan.own_lanes().size());
                    EXPECT_EQ(share.shards, shards);
                    EXPECT_EQ(share.samples, sum);
                    EXPECT_EQ(share.bytes, sum * 1000);
                }
            }
}

TEST(PlanReport, epoch_samples_are_dealt_out) {
    const PlanReport report(options({{"epoch_samples", "10"}, {"world_size", "3"}, {"lanes", "3"}}),
                            indexed({5, 500, 5}));
    EXPECT_EQ(report.share(0).samples, 4U);
    EXPECT_EQ(report.share(2).samples, 3U);
    EXPECT_EQ(report.share(2).bytes, PlanReport::unknown);
    EXPECT_NE(report.text().find("an epoch: 10 samples, going on in the shards where the last one "
                                 "stopped\neach consumer: 1 shard in a pass, 3 to 4 samples\n"),
              std::string::npos)
        << report.text();
    EXPECT_TRUE(report.warnings().empty());
}

// The numbers are those that the plan of a stream has.
TEST(PlanReport, even_epochs) {
    const std::vector<uint64_t> samples = {3, 90, 40, 7, 55, 61, 20};
    for (const char* even : {"drop", "pad"})
        for (const char* shuffle_shards : {"false", "true"}) {
            Options values = options({{"even", even},
                                      {"num_workers", "3"},
                                      {"lanes", "6"},
                                      {"seed", "9"},
                                      {"shuffle_shards", shuffle_shards}});
            const PlanReport report(values, indexed(samples));
            Plan plan(values, samples.size());
            plan.set_counts({samples.begin(), samples.end()});
            uint64_t all = 0;
            for (uint64_t consumer = 0; consumer < 3; ++consumer) {
                EXPECT_EQ(report.share(consumer).samples, plan.even_samples(0));
                all += plan.even_samples(0);
            }
            const std::string line = even == std::string("drop")
                                         ? "even=drop leaves out " + std::to_string(276 - all)
                                         : "even=pad repeats " + std::to_string(all - 276);
            EXPECT_NE(report.text().find(", " + line + "\n"), std::string::npos) << report.text();
            EXPECT_TRUE(report.warnings().empty());
        }
}

TEST(PlanReport, resampling_draws_for_every_lane) {
    const PlanReport report(options({{"resample", "true"}, {"lanes", "4"}, {"num_workers", "2"}}),
                            indexed({7, 7, 7, 7, 7}, 1));
    EXPECT_NE(report.text().find("an epoch: 8 shards drawn with replacement, 56 samples, 56 B\n"
                                 "each consumer: 4 shards, 28 samples\n"),
              std::string::npos)
        << report.text();
}

TEST(PlanReport, many_consumers_get_few_lines) {
    const PlanReport report(options({{"world_size", "100000"}, {"resample", "true"}}),
                            unindexed(1000));
    EXPECT_NE(report.text().find("rank 7 worker 0: 1 lane, 1 shard\n"
                                 "... 99,991 more like these\n"
                                 "rank 99999 worker 0: 1 lane, 1 shard\n"),
              std::string::npos)
        << report.text();
    EXPECT_EQ(lines(report.text()), 3 + 8 + 1 + 1 + report.warnings().size());
    // Where a line would hide only one other, it stands there instead.
    for (const uint64_t consumers : {9U, 10U}) {
        Options values = options({{"lanes", "90"}});
        values.world_size = consumers;
        EXPECT_EQ(lines(PlanReport(values, unindexed(90)).text()), 3 + consumers);
    }
    EXPECT_EQ(
        lines(PlanReport(options({{"world_size", "11"}, {"lanes", "11"}}), unindexed(11)).text()),
        3 + 10);
}

// Each set of options with the words of the one warning that it gets; the same without the fault.
TEST(PlanReport, warns_of_each_fault_and_of_nothing_else) {
    const struct {
        KnownShards shards;
        Settings settings;
        std::vector<const char*> words;  // none: no warning
    } cases[] = {
        // Consumers without a shard: as at open.
        {unindexed(3),
         {{"num_workers", "4"}},
         {"3 shards for 4 consumers (world_size x num_workers); help: ", "resample=true"}},
        {unindexed(3), {{"num_workers", "4"}, {"resample", "true"}}, {}},
        // Unequal parts, by shards and by samples.
        {unindexed(7),
         {{"num_workers", "2"}},
         {"unequal: 3 to 4 shards each", "even=drop", "even=pad", "epoch_samples",
          "a multiple of 2"}},
        {unindexed(8), {{"num_workers", "2"}}, {}},
        {unindexed(7), {{"num_workers", "2"}, {"epoch_samples", "7"}}, {}},
        {unindexed(7), {{"num_workers", "2"}, {"resample", "true"}}, {}},
        {indexed({100, 102}), {{"num_workers", "2"}}, {"100 to 102 samples each"}},
        {indexed({100, 101}), {{"num_workers", "2"}}, {}},
        {indexed({50, 100, 50}), {{"num_workers", "2"}}, {}},
        {indexed({0, 1}), {{"num_workers", "2"}}, {"0 to 1 sample each"}},
        // What the option even cannot do.
        {{.count = 7,
          .samples = {},
          .bytes = {},
          .unknown = "0.tar: no index",
          .needs_index = true},
         {{"num_workers", "2"}, {"even", "drop"}},
         {"would not open: 0.tar: no index; help: ", "write_index=true", "dataset"}},
        {unindexed(7), {{"num_workers", "2"}, {"even", "pad"}}, {}},
        {indexed({50, 100}), {{"num_workers", "2"}, {"even", "pad"}}, {}},
        {indexed({50, 0}),
         {{"num_workers", "2"}, {"even", "drop"}},
         {"consumer 1 has no sample in epoch 0", "would not open", "more shards"}},
        {{.count = 7,
          .samples = {},
          .bytes = {},
          .unknown = "0.tar: no index",
          .needs_index = true},
         {},
         {}},
        // The same order again and again.
        {unindexed(2), {{"epochs", "2"}}, {"same order in every epoch", "shuffle_shards=true"}},
        {unindexed(2), {{"epochs", "0"}, {"shuffle", "1"}}, {"same order in every epoch"}},
        {unindexed(2), {{"epochs", "2"}, {"shuffle", "2"}}, {}},
        {unindexed(2), {{"epochs", "2"}, {"shuffle_shards", "true"}}, {}},
        {unindexed(2), {{"epochs", "2"}, {"resample", "true"}}, {}},
        // A buffer that is smaller than a shard.
        {indexed({900, 1100}),
         {{"shuffle", "999"}},
         {"shuffle=999 is smaller than a shard, which has 1,000 samples on average",
          "shuffle=1000"}},
        {indexed({900, 1100}), {{"shuffle", "1000"}}, {}},
        {unindexed(2), {{"shuffle", "2"}}, {}},
        // Lanes.
        {unindexed(1000),
         {{"world_size", "6"}, {"resample", "true"}},
         {"lanes is not set", "lanes=48"}},
        {unindexed(15), {{"world_size", "3"}}, {"lanes is not set", "example lanes=12"}},
        {unindexed(15), {{"world_size", "3"}, {"lanes", "3"}}, {}},
        {unindexed(15), {{"num_workers", "3"}}, {}},
        {unindexed(15),
         {{"num_workers", "6"}, {"lanes", "9"}},
         {"lanes=9 is not a multiple of the consumers: 2 of them read each lane",
          "a multiple of 6"}},
        // Shuffle buffers of 2 lanes x 1,000 samples x 1,000 bytes.
        {indexed({1000, 1000}),
         {{"shuffle", "1000"}, {"lanes", "2"}, {"memory", "1MiB"}},
         {"need about 1.9 MiB (2 lanes, 1,000 samples each, 1000 B a sample), and memory is 1.0 "
          "MiB",
          "LIMIT", "raise memory"}},
        {indexed({1000, 1000}), {{"shuffle", "1000"}, {"lanes", "2"}, {"memory", "2MiB"}}, {}},
        // No more is held than there is.
        {indexed({500, 500}), {{"shuffle", "1000000"}, {"memory", "1MiB"}}, {}},
        {indexed({0, 0}), {{"shuffle", "10"}}, {}},
    };
    for (const auto& [shards, settings, words] : cases) {
        const auto given = warnings(shards, settings);
        std::string shown = PlanReport(options(settings), shards).text();
        ASSERT_EQ(given.size(), words.empty() ? 0U : 1U) << shown;
        for (const char* word : words) EXPECT_NE(given[0].find(word), std::string::npos) << shown;
        if (!words.empty()) {
            EXPECT_NE(given[0].find("; help: "), std::string::npos) << shown;
            EXPECT_EQ(given[0].find('\n'), std::string::npos);
            EXPECT_TRUE(shown.ends_with("\nwarning: " + given[0] + "\n")) << shown;
        }
    }
}

// What no stream can be opened with stays an error.
TEST(PlanReport, contradictions_are_errors) {
    const Settings cases[] = {{{"rank", "2"}, {"world_size", "2"}},
                              {{"lanes", "9"}, {"world_size", "2"}, {"even", "drop"}},
                              {{"epoch_samples", "1"}, {"world_size", "2"}}};
    for (const Settings& settings : cases)
        EXPECT_THROW(PlanReport(options(settings), unindexed(9)), shf::Error);
    EXPECT_THROW(PlanReport(options({}), unindexed(0)), shf::Error);
}

TEST(PlanReport, sizes_that_no_machine_has_do_not_wrap) {
    KnownShards shards = indexed({10, 10});
    shards.bytes = {UINT64_MAX - 1, UINT64_MAX - 1};
    const PlanReport report(options({{"shuffle", "10"}}), shards);
    EXPECT_NE(report.text().find("16.0 EiB"), std::string::npos) << report.text();
}

// Times are printed and never fail a test.
TEST(PlanReport, a_million_shards_and_a_hundred_thousand_consumers) {
    using Clock = std::chrono::steady_clock;
    const KnownShards shards = indexed(std::vector<uint64_t>(1000000, 1000));
    for (const char* resample : {"false", "true"}) {
        const auto start = Clock::now();
        const PlanReport report(options({{"world_size", "12500"},
                                         {"num_workers", "8"},
                                         {"shuffle_shards", "true"},
                                         {"resample", resample}}),
                                shards);
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        std::printf("resample=%s: %.0f ms\n%s", resample, ms, report.text().c_str());
        EXPECT_EQ(report.consumers(), 100000U);
        EXPECT_EQ(report.share(99999).samples, 10000U);
    }
    // Not even a number for each consumer.
    const PlanReport most(options({{"world_size", "16777216"}, {"num_workers", "255"}}), shards);
    EXPECT_EQ(most.share(most.consumers() - 1).shards, 0U);
    EXPECT_EQ(most.share(0).samples, PlanReport::unknown);
}

}  // namespace
