// The order in which a stream delivers: a matter of URLs, options and seed alone.
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineOrder : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        directory = new TempDirectory;
        write_shards(*directory, std::vector<uint64_t>(16, 40));
    }
    static void TearDownTestSuite() { delete directory; }

    static std::string url(std::string_view name = "{000..015}.tar") { return *directory / name; }

    static std::vector<std::string> keys(const Settings& settings) {
        Client client(url(), settings);
        auto keys = client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return keys;
    }

    static TempDirectory* directory;
    const Watchdog watchdog{300};
};
TempDirectory* EngineOrder::directory = nullptr;

std::vector<std::string> sorted(std::vector<std::string> keys) {
    std::sort(keys.begin(), keys.end());
    return keys;
}

std::vector<std::string> list_order(uint64_t shards = 16, uint64_t samples = 40) {
    std::vector<std::string> keys;
    for (uint64_t s = 0; s < shards; ++s)
        for (uint64_t i = 0; i < samples; ++i) keys.push_back(sample_key(s, i));
    return keys;
}

TEST_F(EngineOrder, plain_run_is_the_list) {
    EXPECT_EQ(keys({}), list_order());
}

TEST_F(EngineOrder, lanes_interleave_their_shards) {
    const auto order = keys({{"lanes", "4"}});
    ASSERT_EQ(order.size(), 640U);
    std::vector<std::string> expected;
    for (uint64_t turn = 0; turn < 4; ++turn)
        for (uint64_t i = 0; i < 40; ++i)
            for (uint64_t lane = 0; lane < 4; ++lane)
                expected.push_back(sample_key(turn * 4 + lane, i));
    EXPECT_EQ(order, expected);
}

// Fixed for ever: the first samples of a shuffled run.
TEST_F(EngineOrder, fixed_shuffled_order) {
    Client client(url(),
                  {{"lanes", "2"}, {"shuffle", "50"}, {"shuffle_shards", "true"}, {"seed", "1"}});
    EXPECT_EQ(client.keys(8),
              (std::vector<std::string>{"s013-00004", "s000-00017", "s002-00013", "s000-00013",
                                        "s002-00034", "s004-00007", "s002-00006", "s004-00004"}));
}

TEST_F(EngineOrder, threads_and_calls_do_not_matter) {
    for (const Settings& order :
         {Settings{}, Settings{{"lanes", "4"}}, Settings{{"shuffle", "30"}},
          Settings{{"lanes", "8"}, {"shuffle", "50"}, {"shuffle_shards", "true"}, {"epochs", "2"}},
          Settings{{"resample", "true"}, {"epochs", "2"}, {"lanes", "2"}}}) {
        const auto reference = keys(order + Settings{{"seed", "11"}, {"threads", "1"}});
        for (const char* threads : {"1", "2", "8"})
            for (const char* memory : {"1MiB", "256MiB"}) {
                const Settings settings =
                    order + Settings{{"seed", "11"}, {"threads", threads}, {"memory", memory}};
                EXPECT_EQ(keys(settings), reference);
                for (const size_t at_once : {0U, 1U, 7U}) {
                    Client client(url(), settings);
                    EXPECT_EQ(client.block_keys(at_once), reference);
                    EXPECT_EQ(client.code, SHF_END) << client.message();
                }
            }
    }
}

// Small samples are copied into blocks, large ones stay where they are, and very large ones end
// their block; whatever comes after what, none is lost on the way.
TEST_F(EngineOrder, blocks_of_small_and_large_samples) {
    const TempDirectory mixed;
    for (uint64_t s = 0; s < 4; ++s) {
        std::string bytes;
        for (uint64_t i = 0; i < 60; ++i) {
            const size_t sizes[] = {0, 100, 3000, 0, 40000, 0, 200000, 0, 0, 700000, 2048, 2049};
            bytes += sample_members(s, i, sizes[(s * 5 + i * 7) % 12]);
        }
        mixed.write(std::to_string(s) + ".tar", bytes + end_marker());
    }
    for (const char* lanes : {"1", "2", "4"})
        for (const char* shuffle : {"0", "20"}) {
            const Settings settings = {{"lanes", lanes}, {"shuffle", shuffle}, {"threads", "2"}};
            Client one_by_one(mixed / "{0..3}.tar", settings);
            const auto reference = one_by_one.keys();
            EXPECT_EQ(reference.size(), 240U);
            for (const size_t at_once : {0U, 1U, 2U, 5U}) {
                Client client(mixed / "{0..3}.tar", settings);
                EXPECT_EQ(client.block_keys(at_once), reference);
                EXPECT_EQ(client.code, SHF_END) << client.message();
            }
        }
}

TEST_F(EngineOrder, seed_and_epoch_matter) {
    const Settings shuffled = {{"shuffle", "50"}, {"shuffle_shards", "true"}};
    const auto reference = keys(shuffled + Settings{{"seed", "1"}});
    EXPECT_EQ(reference, keys(shuffled + Settings{{"seed", "1"}}));
    EXPECT_EQ(sorted(reference), list_order());
    EXPECT_NE(reference, list_order());
    EXPECT_NE(reference, keys(shuffled + Settings{{"seed", "2"}}));
    const auto second = keys(shuffled + Settings{{"seed", "1"}, {"epoch", "1"}});
    EXPECT_NE(reference, second);
    EXPECT_EQ(sorted(second), list_order());
    // Two epochs in one run are the two runs.
    auto both = reference;
    both.insert(both.end(), second.begin(), second.end());
    EXPECT_EQ(keys(shuffled + Settings{{"seed", "1"}, {"epochs", "2"}}), both);
}

// Element t of the global sequence belongs to consumer t mod C, for every C that divides the lanes.
TEST_F(EngineOrder, the_global_sequence_is_the_same_for_any_number_of_consumers) {
    for (const Settings& order :
         {Settings{{"lanes", "8"}},
          Settings{{"lanes", "8"}, {"shuffle", "50"}, {"shuffle_shards", "true"}, {"seed", "3"}},
          Settings{{"lanes", "8"}, {"shuffle", "7"}, {"shuffle_shards", "true"}, {"epochs", "2"}},
          Settings{{"lanes", "8"}, {"resample", "true"}, {"epochs", "2"}, {"seed", "3"}}}) {
        const auto global = keys(order);
        for (const size_t consumers : {1U, 2U, 4U, 8U})
            for (const bool as_workers : {false, true}) {
                std::vector<std::string> woven(global.size());
                for (size_t c = 0; c < consumers; ++c) {
                    const auto part =
                        keys(order + Settings{{as_workers ? "num_workers" : "world_size",
                                               std::to_string(consumers)},
                                              {as_workers ? "worker" : "rank", std::to_string(c)}});
                    ASSERT_EQ(part.size(), global.size() / consumers);
                    for (size_t i = 0; i < part.size(); ++i) woven[i * consumers + c] = part[i];
                }
                EXPECT_EQ(woven, global) << consumers << " consumers";
            }
    }
}

// Ranks times workers: consumer number rank * num_workers + worker.
TEST_F(EngineOrder, ranks_and_workers_together) {
    const auto global = keys({{"lanes", "8"}, {"shuffle", "20"}});
    for (size_t rank = 0; rank < 2; ++rank)
        for (size_t worker = 0; worker < 4; ++worker) {
            const auto part = keys({{"lanes", "8"},
                                    {"shuffle", "20"},
                                    {"world_size", "2"},
                                    {"num_workers", "4"},
                                    {"rank", std::to_string(rank)},
                                    {"worker", std::to_string(worker)}});
            ASSERT_EQ(part.size(), 80U);
            for (size_t i = 0; i < part.size(); ++i)
                EXPECT_EQ(part[i], global[i * 8 + rank * 4 + worker]);
        }
}

// Without lanes the consumers still share the shards and miss none.
TEST_F(EngineOrder, consumers_partition_the_shards) {
    for (const size_t consumers : {1U, 3U, 5U, 16U}) {
        std::vector<std::string> all;
        for (size_t c = 0; c < consumers; ++c) {
            const auto part = keys({{"world_size", std::to_string(consumers)},
                                    {"rank", std::to_string(c)},
                                    {"shuffle_shards", "true"},
                                    {"shuffle", "10"}});
            all.insert(all.end(), part.begin(), part.end());
        }
        EXPECT_EQ(sorted(all), list_order());
    }
}

TEST_F(EngineOrder, uneven_shards_lose_nothing) {
    TempDirectory uneven;
    write_shards(uneven, {5, 1, 90, 3, 17, 2, 40});
    std::vector<std::string> all;
    for (uint64_t s = 0; const uint64_t samples : {5U, 1U, 90U, 3U, 17U, 2U, 40U}) {
        for (uint64_t i = 0; i < samples; ++i) all.push_back(sample_key(s, i));
        ++s;
    }
    for (const char* lanes : {"1", "2", "4", "16"})
        for (const char* shuffle : {"0", "10", "1000"}) {
            Client client(uneven / "{000..006}.tar", {{"lanes", lanes}, {"shuffle", shuffle}});
            EXPECT_EQ(sorted(client.keys()), all);
            EXPECT_EQ(client.code, SHF_END) << client.message();
            std::vector<std::string> dealt;
            for (const char* rank : {"0", "1"}) {
                if (std::string_view(lanes) == "1") continue;
                Client part(
                    uneven / "{000..006}.tar",
                    {{"lanes", lanes}, {"shuffle", shuffle}, {"world_size", "2"}, {"rank", rank}});
                const auto keys = part.block_keys();
                dealt.insert(dealt.end(), keys.begin(), keys.end());
            }
            if (std::string_view(lanes) != "1") {
                EXPECT_EQ(sorted(dealt), all);
            }
        }
}

TEST_F(EngineOrder, positions_tell_lane_shard_and_offset) {
    Client client(url(), {{"lanes", "4"}, {"epoch", "6"}, {"epochs", "2"}});
    std::set<std::vector<uint64_t>> positions;
    for (size_t t = 0; t < 1280; ++t) {
        const SampleHandle sample = client.next();
        ASSERT_TRUE(sample);
        const auto at = [&](int32_t what) { return shf_sample_info(sample.get(), what); };
        EXPECT_EQ(at(SHF_SAMPLE_EPOCH), 6 + t / 640);
        EXPECT_EQ(at(SHF_SAMPLE_LANE), t % 4);
        EXPECT_EQ(at(SHF_SAMPLE_OFFSET), t / 4 % 40 * 1024);
        EXPECT_EQ(sample_key(at(SHF_SAMPLE_SHARD), at(SHF_SAMPLE_OFFSET) / 1024),
                  key_of(sample.get()));
        positions.insert({at(SHF_SAMPLE_EPOCH), at(SHF_SAMPLE_SHARD), at(SHF_SAMPLE_OFFSET)});
    }
    EXPECT_EQ(positions.size(), 1280U);
    EXPECT_FALSE(client.next());
}

TEST_F(EngineOrder, fewer_shards_than_consumers) {
    Client client(url("{000..002}.tar"),
                  {{"world_size", "2"}, {"num_workers", "2"}, {"rank", "0"}, {"worker", "0"}});
    EXPECT_EQ(client.stream, nullptr);
    EXPECT_EQ(client.code, SHF_E_USAGE);
    EXPECT_NE(client.message().find("3 shards for 4 consumers"), std::string::npos)
        << client.message();
    EXPECT_NE(client.message().find("help: "), std::string::npos);
    Client resampled(url("{000..002}.tar"),
                     {{"world_size", "4"}, {"rank", "3"}, {"resample", "true"}});
    EXPECT_EQ(resampled.keys().size(), 40U);
}

}  // namespace
