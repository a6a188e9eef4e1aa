// even=drop and even=pad: every consumer gets the same number of samples in each epoch.
#include "resume_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineEven : public testing::Test {
  protected:
    // Shards with so many samples, each with its index.
    void write(const std::vector<uint64_t>& counts) {
        urls = write_shards(directory, counts);
        for (const std::string& url : urls) {
            shf_error error = {};
            ASSERT_EQ(shf_index_build(url.c_str(), nullptr, &error), SHF_OK) << error.message;
        }
        total = 0;
        for (const uint64_t count : counts) total += count;
    }

    struct Part {
        std::vector<std::string> keys, padding;
    };
    // What one consumer gets, with batches to tell what is padding.
    [[nodiscard]] Part part(const Settings& settings, uint64_t consumers, uint64_t c) const {
        BatchClient client(urls, settings + Settings{{"world_size", std::to_string(consumers)},
                                                     {"rank", std::to_string(c)},
                                                     {"batch", "7"},
                                                     {"decode", "txt:bytes"}});
        EXPECT_EQ(client.code, SHF_OK) << client.message();
        Part part;
        while (const BatchHandle batch = client.next_batch()) {
            size_t index = 0;
            const bool marked = shf_batch_find(batch.get(), "__valid__", 9, &index) == SHF_OK;
            for (size_t i = 0; i < shf_batch_row_count(batch.get()); ++i) {
                const bool valid =
                    !marked || row_of<uint8_t>(column(batch, "__valid__"), i)[0] == 1;
                (valid ? part.keys : part.padding).push_back(text_of(column(batch, "__key__"), i));
            }
        }
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return part;
    }

    TempDirectory directory;
    std::vector<std::string> urls;
    uint64_t total = 0;
    const Watchdog watchdog{300};
};

const Settings ways[] = {
    {},
    {{"shuffle", "40"}},
    {{"lanes", "12"}},
    {{"lanes", "12"}, {"shuffle", "10"}, {"shuffle_shards", "true"}, {"seed", "3"}},
    {{"lanes", "12"}, {"shuffle", "500"}, {"shuffle_shards", "true"}, {"epochs", "3"}},
    {{"slice", "1::2"}, {"lanes", "12"}},
    {{"select_keys", "*[0-4]"}, {"shuffle", "7"}},
};

TEST_F(EngineEven, drop_gives_everybody_the_same_number_once) {
    write({40, 3, 17, 90, 1, 25, 60, 8, 33, 2, 71, 12});
    for (const Settings& way : ways)
        for (const uint64_t consumers : {1U, 2U, 3U, 4U, 6U, 12U}) {
            const bool filtered =
                !way.empty() && (way[0].first == "slice" || way[0].first == "select_keys");
            if (filtered && consumers > 3) continue;  // a shard may have nothing left
            std::set<size_t> sizes;
            std::multiset<std::string> seen;
            for (uint64_t c = 0; c < consumers; ++c) {
                const Part got = part(way + Settings{{"even", "drop"}}, consumers, c);
                EXPECT_TRUE(got.padding.empty());
                sizes.insert(got.keys.size());
                seen.insert(got.keys.begin(), got.keys.end());
            }
            EXPECT_EQ(sizes.size(), 1U) << consumers;
            EXPECT_GT(*sizes.begin(), 0U);
            const bool epochs = way.size() == 4 && way[3].first == "epochs";
            for (const std::string& key : seen) EXPECT_LE(seen.count(key), epochs ? 3U : 1U) << key;
            if (consumers == 1 && !epochs && !filtered) {
                EXPECT_EQ(seen.size(), total);
            }
        }
}

TEST_F(EngineEven, pad_gives_everything_and_marks_the_rest) {
    write({40, 3, 17, 90, 1, 25, 60, 8, 33, 2, 71, 12});
    for (const Settings& way : {ways[0], ways[1], ways[2], ways[3]})
        for (const uint64_t consumers : {1U, 2U, 3U, 4U, 6U, 12U}) {
            std::set<size_t> sizes;
            std::multiset<std::string> seen;
            for (uint64_t c = 0; c < consumers; ++c) {
                const Part got = part(way + Settings{{"even", "pad"}}, consumers, c);
                sizes.insert(got.keys.size() + got.padding.size());
                seen.insert(got.keys.begin(), got.keys.end());
                // Padding is made of this consumer's own samples.
                for (const std::string& key : got.padding)
                    EXPECT_EQ(std::count(got.keys.begin(), got.keys.end(), key), 1) << key;
            }
            EXPECT_EQ(sizes.size(), 1U) << consumers;
            EXPECT_EQ(seen.size(), total);
            for (const std::string& key : seen) EXPECT_EQ(seen.count(key), 1U) << key;
        }
}

TEST_F(EngineEven, the_number_is_known_before) {
    write({40, 3, 17, 90, 1, 25});
    for (const char* even : {"drop", "pad"})
        for (const char* shuffle_shards : {"false", "true"}) {
            const Settings settings{{"even", even},
                                    {"shuffle_shards", shuffle_shards},
                                    {"world_size", "3"},
                                    {"rank", "1"}};
            Client client(urls, settings);
            const uint64_t promised = client.stat(SHF_STAT_EPOCH_SAMPLES);
            EXPECT_EQ(client.keys().size(), promised);
            EXPECT_EQ(client.code, SHF_END) << client.message();
        }
}

TEST_F(EngineEven, goes_on_where_it_stopped) {
    write({40, 3, 17, 90, 1, 25, 60, 8});
    std::mt19937 random(7);
    for (const char* even : {"drop", "pad"})
        for (const Settings& way : ways) {
            const bool lanes =
                std::find(way.begin(), way.end(),
                          std::pair<std::string, std::string>("lanes", "12")) != way.end();
            Settings settings = way + Settings{{"even", even}, {"world_size", "2"}, {"rank", "1"}};
            if (lanes) settings.emplace_back("lanes", "8");
            Client client(urls, settings);
            ASSERT_EQ(client.code, SHF_OK) << client.message();
            const auto whole = client.keys();
            EXPECT_EQ(client.code, SHF_END) << client.message();
            std::vector<std::string> keys;
            State state;
            for (bool more = true; more;) {
                Client part(urls, settings);
                if (!state.empty()) {
                    ASSERT_EQ(restore(part, state), SHF_OK) << part.message();
                }
                const auto some = part.keys(1 + random() % 60);
                keys.insert(keys.end(), some.begin(), some.end());
                more = part.code == SHF_OK;
                if (!more) {
                    ASSERT_EQ(part.code, SHF_END) << part.message();
                }
                state = save(part);
            }
            EXPECT_EQ(keys, whole);
        }
}

TEST_F(EngineEven, says_what_it_needs) {
    write({4, 3});
    std::filesystem::remove(urls[1] + ".idx");
    for (const auto& file : std::filesystem::directory_iterator(directory / ""))
        if (file.path().string().starts_with(urls[1]) && file.path().string() != urls[1])
            std::filesystem::remove(file.path());
    Client client(urls, {{"even", "drop"}, {"world_size", "2"}, {"rank", "0"}});
    EXPECT_EQ(client.code, SHF_E_NOT_FOUND) << client.message();
    EXPECT_NE(client.message().find("001.tar"), std::string::npos) << client.message();
    EXPECT_NE(client.message().find("epoch_samples"), std::string::npos) << client.message();
    for (const Settings& bad : {Settings{{"resample", "true"}}, Settings{{"epoch_samples", "9"}},
                                Settings{{"on_error", "skip_sample"}}}) {
        Client refused(urls, bad + Settings{{"even", "pad"}});
        EXPECT_EQ(refused.code, SHF_E_USAGE) << refused.message();
    }
}

// A state of another number of consumers may only be used between epochs: in the middle of one the
// parts would not be even.
TEST_F(EngineEven, other_numbers_of_consumers_begin_with_an_epoch) {
    write({40, 30, 17, 90});
    const Settings settings{{"even", "drop"}, {"lanes", "4"}};
    std::vector<State> states;
    for (const char* rank : {"0", "1"}) {
        Client client(urls, settings + Settings{{"world_size", "2"}, {"rank", rank}});
        EXPECT_EQ(client.keys(10).size(), 10U);
        states.push_back(save(client));
    }
    const State merged = merge(states);
    Client same(urls, settings + Settings{{"world_size", "2"}, {"rank", "1"}});
    EXPECT_EQ(restore(same, merged), SHF_OK) << same.message();
    Client other(urls, settings);
    EXPECT_EQ(restore(other, merged), SHF_E_USAGE);
    EXPECT_NE(other.message().find("even"), std::string::npos) << other.message();
}

// Another permutation may leave a consumer without samples: that ends the stream there, and an
// epoch after the last one is nobody's business.
TEST_F(EngineEven, a_later_epoch_may_have_nothing_for_a_consumer) {
    write({3, 3, 3, 3});
    for (const uint64_t seed : {1U, 3U, 5U, 7U}) {
        uint64_t samples = 0;
        for (const char* epochs : {"30", "1", "2", "3", "4"}) {
            Client client(urls, {{"even", "drop"},
                                 {"world_size", "2"},
                                 {"rank", "0"},
                                 {"shuffle_shards", "true"},
                                 {"seed", std::to_string(seed)},
                                 {"select_keys", "s000*,s001*"},
                                 {"epochs", epochs},
                                 {"timeout", "20s"}});
            if (!client.stream) break;  // the first epoch is such a one
            const uint64_t got = client.keys().size();
            if (epochs[1] == '0') {
                EXPECT_EQ(client.code, SHF_E_USAGE);
                EXPECT_NE(client.message().find("has no sample in epoch"), std::string::npos);
                samples = got;
            } else if (static_cast<uint64_t>(epochs[0] - '0') * 3 <= samples) {
                EXPECT_EQ(client.code, SHF_END) << client.message();
                EXPECT_EQ(got, static_cast<uint64_t>(epochs[0] - '0') * 3);
            }
        }
    }
}

}  // namespace
