// Any number of consumers for any number of lanes: those that share lanes deal out the samples, and
// their states can be merged and dealt out anew.
#include "resume_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

using Keys = std::vector<std::string>;

class EngineSharing : public testing::Test {
  protected:
    void write(const std::vector<uint64_t>& counts) { urls = write_shards(directory, counts); }
    [[nodiscard]] static Settings among(const Settings& settings, uint64_t consumers, uint64_t c) {
        return settings +
               Settings{{"world_size", std::to_string(consumers)}, {"rank", std::to_string(c)}};
    }
    // What is left of each consumer, from a state or from the beginning.
    [[nodiscard]] std::vector<Keys> parts(const Settings& settings, uint64_t consumers,
                                          const State& state = {}) const {
        std::vector<Keys> parts;
        for (uint64_t c = 0; c < consumers; ++c) {
            Client client(urls, among(settings, consumers, c));
            EXPECT_EQ(client.code, SHF_OK) << client.message();
            if (!state.empty()) {
                EXPECT_EQ(restore(client, state), SHF_OK) << client.message();
            }
            parts.push_back(client.keys(1'000'000));
            EXPECT_EQ(client.code, SHF_END) << client.message();
        }
        return parts;
    }
    [[nodiscard]] Keys all(const Settings& settings) const { return parts(settings, 1)[0]; }

    TempDirectory directory;
    std::vector<std::string> urls;
    const Watchdog watchdog{300};
};

Keys joined(const std::vector<Keys>& parts) {
    Keys keys;
    for (const Keys& part : parts) keys.insert(keys.end(), part.begin(), part.end());
    return keys;
}

Keys sorted(Keys keys) {
    std::sort(keys.begin(), keys.end());
    return keys;
}

// A sequence in which keys come again, one epoch after another: `part` is in it, in its order.
bool in_order(const Keys& part, const Keys& whole) {
    size_t at = 0;
    for (const std::string& key : part) {
        while (at < whole.size() && whole[at] != key) ++at;
        if (at++ == whole.size()) return false;
    }
    return true;
}

const Settings ways[] = {
    {{"lanes", "1"}},
    {{"lanes", "4"}},
    {{"lanes", "6"}, {"shuffle", "10"}, {"shuffle_shards", "true"}, {"seed", "3"}},
    {{"lanes", "4"}, {"shuffle", "25"}, {"epochs", "3"}, {"shuffle_shards", "true"}},
    {{"lanes", "6"}, {"limit", "70"}, {"epochs", "2"}},
    {{"lanes", "9"}, {"resample", "true"}},
};

TEST_F(EngineSharing, every_sample_goes_to_one_consumer) {
    write({12, 3, 17, 29, 1, 25, 14, 8, 21});
    for (const Settings& way : ways) {
        const Keys whole = all(way);
        for (const uint64_t consumers : {2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
            const auto each = parts(way, consumers);
            EXPECT_EQ(sorted(joined(each)), sorted(whole)) << consumers;
            for (const Keys& part : each) EXPECT_TRUE(in_order(part, whole)) << consumers;
        }
    }
}

// As long as no lane has ended consumer c of C has the elements t with t mod C = c.
TEST_F(EngineSharing, element_t_is_for_consumer_t_mod_c) {
    write({20, 20, 20, 20, 20, 20});
    for (const char* lanes : {"1", "2", "3", "6"}) {
        const Settings settings = {{"lanes", lanes}, {"shuffle", "7"}};
        const Keys whole = all(settings);
        for (const uint64_t consumers : {2U, 3U, 4U, 5U, 6U, 7U, 12U}) {
            if (std::stoul(lanes) % consumers == 0) continue;
            std::vector<Keys> expected(consumers);
            for (size_t t = 0; t < whole.size(); ++t) expected[t % consumers].push_back(whole[t]);
            EXPECT_EQ(parts(settings, consumers), expected) << lanes << " " << consumers;
        }
    }
}

TEST_F(EngineSharing, states_are_dealt_out_to_any_number) {
    write({12, 3, 17, 29, 11, 25, 14, 8, 21});
    for (const Settings& way : ways) {
        const Keys whole = all(way);
        for (const uint64_t before : {1U, 2U, 3U, 5U, 7U})
            for (const uint64_t after : {1U, 2U, 4U, 5U, 6U})
                for (const size_t stop : {0U, 1U, 5U, 9U}) {
                    if ((before + after + stop) % CASE_STRIDE != 0) continue;
                    Keys had;
                    std::vector<State> states;
                    for (uint64_t c = 0; c < before; ++c) {
                        Client client(urls, among(way, before, c));
                        const Keys some = client.keys(stop);
                        had.insert(had.end(), some.begin(), some.end());
                        states.push_back(save(client));
                    }
                    const auto rest = parts(way, after, merge(states));
                    Keys both = joined(rest);
                    both.insert(both.end(), had.begin(), had.end());
                    ASSERT_EQ(sorted(both), sorted(whole))
                        << before << " to " << after << " after " << stop;
                    for (const Keys& part : rest) EXPECT_TRUE(in_order(part, whole));
                }
    }
}

// As bindings save: in the middle of a block.
TEST_F(EngineSharing, states_of_blocks_are_dealt_out_to_any_number) {
    write({12, 3, 17, 29, 11, 25, 14, 8, 21});
    for (const Settings& way : ways) {
        const Keys whole = all(way);
        for (const uint64_t before : {1U, 2U, 3U, 6U})
            for (const uint64_t after : {1U, 2U, 3U, 5U}) {
                Keys had;
                std::vector<State> states;
                for (uint64_t c = 0; c < before; ++c) {
                    Client client(urls, among(way, before, c));
                    Keys some;
                    size_t unread = 0;
                    while (some.size() < 8) {
                        const Keys block = block_of(client, 5);
                        ASSERT_FALSE(block.empty());
                        some.insert(some.end(), block.begin(), block.end());
                    }
                    unread = some.size() - 8;
                    had.insert(had.end(), some.begin(), some.begin() + 8);
                    states.push_back(save(client, unread));
                }
                State state = merge(states);
                // Restored and saved again before anything was taken, or after one sample.
                for (const size_t taken : {0U, 1U}) {
                    states.clear();
                    for (uint64_t c = 0; c < after; ++c) {
                        Client client(urls, among(way, after, c));
                        ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
                        const Keys some = client.keys(taken);
                        had.insert(had.end(), some.begin(), some.end());
                        states.push_back(save(client));
                    }
                    state = merge(states);
                }
                for (const Keys& part : parts(way, 4, state))
                    had.insert(had.end(), part.begin(), part.end());
                ASSERT_EQ(sorted(had), sorted(whole)) << before << " to " << after;
            }
    }
}

// Again and again, through the ends of lanes and epochs.
TEST_F(EngineSharing, a_run_that_changes_its_size_all_the_time) {
    write({12, 3, 17, 29, 11, 25, 14, 8, 21});
    for (const Settings& way : ways) {
        const Keys whole = all(way);
        Keys had;
        State state;
        const uint64_t sizes[] = {5, 2, 3, 7, 4, 6, 1, 3, 2, 5};
        for (size_t i = 0; had.size() < whole.size(); ++i) {
            const uint64_t consumers = sizes[i % std::size(sizes)];
            std::vector<State> states;
            for (uint64_t c = 0; c < consumers; ++c) {
                Client client(urls, among(way, consumers, c));
                if (!state.empty()) {
                    ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
                }
                const Keys some = client.keys(3 + i % 4);
                had.insert(had.end(), some.begin(), some.end());
                states.push_back(save(client));
            }
            state = merge(states);
            ASSERT_LT(i, 1000U);
        }
        EXPECT_EQ(sorted(had), sorted(whole));
    }
}

// Blocks and batches of one consumer that shares its lanes, stopped anywhere.
TEST_F(EngineSharing, one_consumer_goes_on) {
    write({12, 3, 17, 29, 11, 25, 14, 8, 21});
    for (const Settings& way : ways) {
        const Settings mine = among(way, 5, 3);
        const Keys whole = parts(way, 5)[3];
        for (const size_t stop : {0U, 1U, 4U, 10U}) {
            Client first(urls, mine);
            Keys keys;
            for (size_t i = 0; i < stop; ++i) {
                const Keys block = block_of(first, 0);
                keys.insert(keys.end(), block.begin(), block.end());
            }
            if (first.code != SHF_OK) continue;
            Client second(urls, mine);
            ASSERT_EQ(restore(second, save(first)), SHF_OK) << second.message();
            const Keys rest = second.keys(1'000'000);
            keys.insert(keys.end(), rest.begin(), rest.end());
            EXPECT_EQ(keys, whole);

            const Settings batched =
                mine + Settings{{"batch", "3"}, {"decode", "txt:bytes"}, {"decode_threads", "2"}};
            BatchClient third(urls, batched);
            keys.clear();
            for (size_t i = 0; i < stop; ++i) {
                const Keys batch = batch_of(third);
                keys.insert(keys.end(), batch.begin(), batch.end());
            }
            BatchClient fourth(urls, batched);
            ASSERT_EQ(restore(fourth, save(third)), SHF_OK) << fourth.message();
            while (fourth.code == SHF_OK) {
                const Keys batch = batch_of(fourth);
                keys.insert(keys.end(), batch.begin(), batch.end());
            }
            EXPECT_EQ(keys, whole);
        }
    }
}

TEST_F(EngineSharing, batches_of_all_are_merged) {
    write({12, 30, 17, 29, 11, 25, 14, 18, 21});
    const Settings settings = {
        {"lanes", "4"}, {"shuffle", "9"}, {"batch", "4"}, {"decode", "txt:bytes"}};
    Keys keys;
    std::vector<State> states;
    for (uint64_t c = 0; c < 3; ++c) {
        BatchClient client(urls, among(settings, 3, c));
        for (int i = 0; i < 3; ++i) {
            const Keys batch = batch_of(client);
            keys.insert(keys.end(), batch.begin(), batch.end());
        }
        states.push_back(save(client));
    }
    const State state = merge(states);
    for (uint64_t c = 0; c < 5; ++c) {
        BatchClient client(urls, among(settings, 5, c));
        ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
        while (client.code == SHF_OK) {
            const Keys batch = batch_of(client);
            keys.insert(keys.end(), batch.begin(), batch.end());
        }
    }
    EXPECT_EQ(sorted(keys), sorted(all({{"lanes", "4"}, {"shuffle", "9"}})));
}

TEST_F(EngineSharing, epoch_samples_are_shared_as_well) {
    write({12, 30, 17, 29, 11, 25});
    const Settings settings = {{"lanes", "4"}, {"epoch_samples", "100"}, {"epochs", "2"}};
    for (const uint64_t consumers : {3U, 5U, 7U}) {
        std::vector<State> states;
        size_t count = 0;
        for (uint64_t c = 0; c < consumers; ++c) {
            Client client(urls, among(settings, consumers, c));
            count += client.keys(8).size();
            states.push_back(save(client));
        }
        for (const Keys& part : parts(settings, 6, merge(states))) count += part.size();
        EXPECT_EQ(count, 200U);
    }
}

TEST_F(EngineSharing, what_is_refused) {
    write({12, 30, 17, 29, 11, 25});
    const Settings settings = {{"lanes", "4"}};
    std::vector<State> states;
    for (uint64_t c = 0; c < 3; ++c) {
        Client client(urls, among(settings, 3, c));
        (void)client.keys(c == 1 ? 3 : 7);
        states.push_back(save(client));
    }
    const auto refusal = [](const std::vector<State>& given) {
        std::vector<shf_bytes> parts;
        for (const State& state : given) parts.push_back({state.data(), state.size()});
        shf_state* merged = nullptr;
        shf_error error = {};
        EXPECT_EQ(shf_state_merge(parts.data(), parts.size(), &merged, &error), SHF_E_USAGE);
        return std::string(error.message);
    };
    const auto has = [](const std::string& text, const char* part) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    has(refusal(states), "consumers 1 and 2, which read the same lanes, did not stop at the same");
    has(refusal({states[0], states[1]}), "of 2 of 3 consumers");
    has(refusal({states[0], states[0], states[2]}), "two of the states are of consumer 0");
    // The state of one is not that of all.
    for (const uint64_t consumers : {1U, 2U, 6U}) {
        Client other(urls, among(settings, consumers, 0));
        EXPECT_EQ(restore(other, states[0]), SHF_E_USAGE);
        has(other.message(), "of 1 of 3 consumers");
    }
}

TEST_F(EngineSharing, it_is_told_once) {
    write({12, 30, 17, 29, 11, 25});
    std::string told;
    const auto hear = [](void* ctx, int32_t level, const char* message) {
        if (level == SHF_LOG_WARNING) *static_cast<std::string*>(ctx) += message;
    };
    const auto listen = [&](shf_options* options) {
        shf_options_set_log(options, SHF_LOG_WARNING, hear, &told);
    };
    // Those that nobody hears do not count.
    EXPECT_EQ(Client(urls, among({{"lanes", "4"}}, 6, 1)).keys(1).size(), 1U);
    Client client(urls, among({{"lanes", "4"}}, 6, 1), listen);
    EXPECT_EQ(client.keys(1).size(), 1U);
    EXPECT_NE(told.find("lanes=4 is not a multiple of the 6 consumers: every lane is read by 3"),
              std::string::npos)
        << told;
    told.clear();
    for (const uint64_t consumer : {1U, 2U}) {
        Client next(urls, among({{"lanes", "4"}}, 6, consumer), listen);
        EXPECT_EQ(next.keys(1).size(), 1U);
    }
    EXPECT_EQ(told, "");
}

}  // namespace
