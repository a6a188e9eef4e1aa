// Epochs: their number, their length, and drawing with replacement.
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineEpochs : public testing::Test {
  protected:
    EngineEpochs() { write_shards(directory, {10, 20, 30, 40}); }

    std::vector<std::string> keys(const Settings& settings, size_t most = SIZE_MAX) {
        Client client(directory / "{000..003}.tar", settings);
        auto keys = client.keys(most);
        EXPECT_EQ(client.code, keys.size() == most ? SHF_OK : SHF_END) << client.message();
        return keys;
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(EngineEpochs, as_many_as_asked) {
    const auto one = keys({});
    ASSERT_EQ(one.size(), 100U);
    for (const size_t epochs : {1U, 2U, 5U}) {
        const auto all = keys({{"epochs", std::to_string(epochs)}});
        ASSERT_EQ(all.size(), epochs * 100);
        for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], one[i % 100]);
    }
}

TEST_F(EngineEpochs, for_ever) {
    const auto all = keys({{"epochs", "0"}, {"threads", "3"}}, 5000);
    ASSERT_EQ(all.size(), 5000U);
    std::map<std::string, int> count;
    for (const std::string& key : all) ++count[key];
    EXPECT_EQ(count.size(), 100U);
    for (const auto& [key, times] : count) EXPECT_EQ(times, 50) << key;
}

TEST_F(EngineEpochs, epoch_is_the_number_of_the_first) {
    const Settings shuffled = {{"shuffle_shards", "true"}, {"shuffle", "20"}, {"seed", "5"}};
    const auto three = keys(shuffled + Settings{{"epochs", "3"}});
    ASSERT_EQ(three.size(), 300U);
    for (size_t epoch = 0; epoch < 3; ++epoch) {
        const auto one = keys(shuffled + Settings{{"epoch", std::to_string(epoch)}});
        EXPECT_TRUE(std::equal(one.begin(), one.end(),
                               three.begin() + static_cast<ptrdiff_t>(epoch * 100)));
    }
    EXPECT_EQ(keys(shuffled + Settings{{"epoch", "4294967295"}, {"epochs", "2"}}).size(), 200U);
}

// epoch_samples cuts the same endless sequence anywhere: it goes on where it stopped.
TEST_F(EngineEpochs, epoch_samples_go_on) {
    for (const Settings& order :
         {Settings{}, Settings{{"shuffle_shards", "true"}, {"shuffle", "15"}},
          Settings{{"lanes", "2"}, {"shuffle", "15"}}}) {
        const auto endless = keys(order + Settings{{"epochs", "0"}}, 700);
        for (const size_t length : {1U, 33U, 100U, 250U}) {
            const size_t epochs = length == 250 ? 2 : 3;
            auto expected = endless;
            expected.resize(length * epochs);
            const Settings settings = order + Settings{{"epoch_samples", std::to_string(length)},
                                                       {"epochs", std::to_string(epochs)}};
            EXPECT_EQ(keys(settings), expected);
            Client client(directory / "{000..003}.tar", settings);
            EXPECT_EQ(client.stat(SHF_STAT_EPOCH_SAMPLES), length);
            EXPECT_EQ(client.block_keys(), expected);
            EXPECT_EQ(client.code, SHF_END);
            EXPECT_EQ(client.stat(SHF_STAT_SAMPLES), expected.size());
        }
    }
}

TEST_F(EngineEpochs, epoch_samples_of_several_consumers) {
    size_t all = 0;
    for (const char* rank : {"0", "1", "2"}) {
        const Settings settings = {{"epoch_samples", "100"}, {"world_size", "3"}, {"rank", rank}};
        Client client(directory / "{000..003}.tar", settings);
        const uint64_t share = client.stat(SHF_STAT_EPOCH_SAMPLES);
        const auto part = client.keys();
        EXPECT_EQ(part.size(), share);
        all += part.size();
    }
    EXPECT_EQ(all, 100U);
}

TEST_F(EngineEpochs, resample_draws_with_replacement) {
    Client client(directory / "{000..003}.tar",
                  {{"resample", "true"}, {"epochs", "200"}, {"seed", "1"}});
    std::map<uint64_t, uint64_t> drawn;  // times that each shard was read
    uint64_t shards = 0;
    while (const SampleHandle sample = client.next()) {
        if (shf_sample_info(sample.get(), SHF_SAMPLE_OFFSET) != 0) continue;
        ++drawn[shf_sample_info(sample.get(), SHF_SAMPLE_SHARD)];
        ++shards;
    }
    EXPECT_EQ(client.code, SHF_END);
    EXPECT_EQ(shards, 800U);
    ASSERT_EQ(drawn.size(), 4U);
    for (const auto& [shard, times] : drawn)
        EXPECT_NEAR(static_cast<double>(times), 200, 62);  // 5 sigma
    EXPECT_EQ(client.stat(SHF_STAT_SHARDS), 800U);
    // Some epoch repeats a shard: it is no permutation.
    EXPECT_NE(keys({{"resample", "true"}, {"epochs", "4"}}).size(), 400U);
}

TEST_F(EngineEpochs, a_lane_without_shards_is_no_hindrance) {
    EXPECT_EQ(keys({{"lanes", "8"}, {"epochs", "3"}}).size(), 300U);
    EXPECT_EQ(keys({{"lanes", "8"}, {"world_size", "4"}, {"rank", "3"}}).size(), 40U);
    // Five shards for eight lanes: rank 3 has lanes 3 and 7, of which 7 has nothing.
}

}  // namespace
