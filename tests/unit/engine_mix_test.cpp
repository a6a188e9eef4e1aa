// Mixes of streams: what comes when, how they end, what goes wrong in a part, and that a stop
// leaves no trace.
#include "mix_client.h"
#include "order/state_encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace shf::test;
using std::chrono::steady_clock;

// Three data sets: shards 000 to 003 with 50 samples each, 004 to 005 with 30, 006 with 5.
class EngineMix : public testing::Test {
  protected:
    EngineMix() { write_shards(directory, {50, 50, 50, 50, 30, 30, 5}); }

    [[nodiscard]] std::unique_ptr<Client> large(const Settings& settings = {}) const {
        return part(directory / "{000..003}.tar", settings);
    }
    [[nodiscard]] std::unique_ptr<Client> middle(const Settings& settings = {}) const {
        return part(directory / "{004..005}.tar", settings);
    }
    [[nodiscard]] std::unique_ptr<Client> small(const Settings& settings = {}) const {
        return part(directory / "006.tar", settings);
    }

    TempDirectory directory;
    const Watchdog watchdog{300};
};

// Which of the three data sets a key is of.
size_t set_of(const std::string& key) {
    return key < "s004" ? 0 : key < "s006" ? 1 : 2;
}
std::vector<std::string> of_set(const std::vector<std::string>& keys, size_t set) {
    std::vector<std::string> some;
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(some),
                 [&](const std::string& key) { return set_of(key) == set; });
    return some;
}

TEST_F(EngineMix, delivers_each_part_in_its_own_order) {
    const Settings shuffled = {{"shuffle", "20"}, {"lanes", "2"}, {"seed", "7"}};
    MixClient mix(parts_of(large(shuffled), middle(), small()), {4, 2, 1}, {});
    ASSERT_EQ(mix.code, SHF_OK) << mix.message();
    const auto keys = mix.keys();
    EXPECT_EQ(mix.code, SHF_END) << mix.message();
    EXPECT_EQ(keys.size(), 265U);
    EXPECT_EQ(of_set(keys, 0), large(shuffled)->keys());
    EXPECT_EQ(of_set(keys, 1), middle()->keys());
    EXPECT_EQ(of_set(keys, 2), small()->keys());
    EXPECT_EQ(mix.stat(SHF_STAT_SAMPLES), 265U);
    EXPECT_EQ(mix.stat(SHF_STAT_SHARDS), 7U);
}

TEST_F(EngineMix, has_the_same_order_for_all_threads_and_calls) {
    const auto open = [&](const std::string& threads) {
        const Settings settings = {{"threads", threads}, {"shuffle", "9"}, {"lanes", "2"}};
        return MixClient(parts_of(large(settings), middle({{"threads", threads}}), small()),
                         {4, 2, 1}, {{"seed", "3"}})
            .keys();
    };
    const auto keys = open("1");
    EXPECT_EQ(keys.size(), 265U);
    EXPECT_EQ(open("2"), keys);
    EXPECT_EQ(open("7"), keys);
    const Settings settings = {{"shuffle", "9"}, {"lanes", "2"}};
    for (const size_t at_once : {0U, 1U, 7U}) {
        MixClient mix(parts_of(large(settings), middle(), small()), {4, 2, 1}, {{"seed", "3"}});
        EXPECT_EQ(mix.block_keys(at_once), keys);
        EXPECT_EQ(mix.code, SHF_END) << mix.message();
    }
    MixClient other(parts_of(large(settings), middle(), small()), {4, 2, 1}, {{"seed", "4"}});
    EXPECT_NE(other.keys(), keys);
}

TEST_F(EngineMix, keeps_the_proportions) {
    const Settings endless = {{"epochs", "0"}};
    MixClient mix(parts_of(large(endless), middle(endless), small(endless)), {3, 1, 4}, {});
    constexpr size_t draws = 40000;
    const auto keys = mix.keys(draws);
    ASSERT_EQ(keys.size(), draws) << mix.message();
    const double shares[] = {3.0 / 8, 1.0 / 8, 4.0 / 8};
    for (size_t set = 0; set < 3; ++set)
        EXPECT_NEAR(static_cast<double>(of_set(keys, set).size()), draws * shares[set],
                    5 * std::sqrt(draws * shares[set] * (1 - shares[set])));
}

TEST_F(EngineMix, ends_with_the_first_part) {
    MixClient mix(parts_of(large(), small()), {}, {{"until", "first"}});
    const auto keys = mix.keys();
    EXPECT_EQ(mix.code, SHF_END) << mix.message();
    EXPECT_EQ(of_set(keys, 2).size(), 5U);
    EXPECT_LT(keys.size(), 100U);
    // It is over when another sample of the part that ended would come.
    MixClient again(parts_of(large(), small()), {}, {{"until", "all"}});
    EXPECT_EQ(again.keys(keys.size()), keys);
}

TEST_F(EngineMix, goes_on_for_ever) {
    MixClient mix(parts_of(large({{"shuffle", "10"}}), small({{"epoch", "3"}})), {1, 3},
                  {{"until", "forever"}});
    std::vector<std::string> keys;
    uint64_t epoch = 0;
    for (size_t i = 0; i < 2000; ++i) {
        const SampleHandle sample = mix.next();
        ASSERT_TRUE(sample) << mix.message();
        keys.push_back(key_of(sample.get()));
        if (shf_sample_info(sample.get(), SHF_SAMPLE_PART) == 1)
            epoch = shf_sample_info(sample.get(), SHF_SAMPLE_EPOCH);
    }
    EXPECT_EQ(of_set(keys, 0),
              large({{"shuffle", "10"}, {"epochs", "0"}})->keys(of_set(keys, 0).size()));
    const size_t small_ones = of_set(keys, 2).size();
    EXPECT_EQ(epoch, 3 + (small_ones - 1) / 5);
    EXPECT_GT(small_ones, 1000U);
}

TEST_F(EngineMix, counts_the_streams_of_nested_mixes_through) {
    auto inner = std::make_unique<MixClient>(parts_of(middle(), small()), std::vector<double>{2, 1},
                                             Settings{{"seed", "5"}});
    MixClient mix(parts_of(large(), std::move(inner), middle()), {}, {});
    ASSERT_EQ(mix.code, SHF_OK) << mix.message();
    std::vector<std::vector<std::string>> keys(4);
    while (const SampleHandle sample = mix.next())
        keys[shf_sample_info(sample.get(), SHF_SAMPLE_PART)].push_back(key_of(sample.get()));
    EXPECT_EQ(mix.code, SHF_END) << mix.message();
    EXPECT_EQ(keys[0], large()->keys());
    EXPECT_EQ(keys[1], middle()->keys());
    EXPECT_EQ(keys[2], small()->keys());
    EXPECT_EQ(keys[3], middle()->keys());
}

TEST_F(EngineMix, makes_batches) {
    const auto open = [&] { return parts_of(large({{"shuffle", "9"}}), middle()); };
    const auto keys = MixClient(open(), {2, 1}, {}).keys();
    for (const char* threads : {"1", "3"}) {
        MixClient mix(open(), {2, 1},
                      {{"batch", "32"}, {"decode", "txt"}, {"decode_threads", threads}});
        std::vector<std::string> rows;
        for (;;) {
            const auto batch = batch_of(mix);
            if (batch.empty()) break;
            rows.insert(rows.end(), batch.begin(), batch.end());
        }
        EXPECT_EQ(mix.code, SHF_END) << mix.message();
        EXPECT_EQ(rows, keys);
    }
}

// A part whose samples have no rows is told by its own epochs, not by those of other parts.
TEST_F(EngineMix, parts_in_different_epochs_may_have_bad_rows) {
    std::string bytes;
    for (uint64_t i = 0; i < 20; ++i)
        bytes += i % 2 ? member(sample_key(9, i) + ".bin", "x") : sample_members(9, i);
    directory.write("009.tar", bytes + end_marker());
    MixClient mix(
        parts_of(part(directory / "009.tar", {{"epochs", "0"}}), large({{"epochs", "0"}})), {3, 1},
        {{"batch", "16"}, {"decode", "txt"}, {"missing", "skip"}});
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(batch_of(mix).size(), 16U) << mix.message();
    EXPECT_GT(mix.stat(SHF_STAT_PASSED_OVER), 0U);
}

TEST_F(EngineMix, tells_what_is_wrong_with_a_part) {
    std::string bytes = shard_bytes(7, 10);
    bytes[512 * 2 * 5 + 3] ^= 1;  // in the name of sample 5: sample 4 may go on there
    directory.write("007.tar", bytes);
    const std::string url = directory / "007.tar";
    std::vector<std::string> keys;
    {
        MixClient mix(parts_of(large(), part(url)), {}, {});
        keys = mix.keys();
        EXPECT_EQ(mix.code, SHF_E_FORMAT) << mix.message();
        EXPECT_NE(mix.message().find("007.tar"), std::string::npos) << mix.message();
        EXPECT_EQ(std::count_if(keys.begin(), keys.end(),
                                [](const auto& key) { return key.starts_with("s007"); }),
                  4);
        EXPECT_FALSE(mix.next());  // it stays
        EXPECT_EQ(mix.code, SHF_E_FORMAT);
    }
    MixClient blocks(parts_of(large(), part(url)), {}, {});
    EXPECT_EQ(blocks.block_keys(), keys);
    EXPECT_EQ(blocks.code, SHF_E_FORMAT) << blocks.message();
    // Each part has its own on_error.
    MixClient skips(parts_of(large(), part(url, {{"on_error", "skip_shard"}})), {}, {});
    EXPECT_EQ(skips.keys().size(), 204U);
    EXPECT_EQ(skips.code, SHF_END) << skips.message();
    EXPECT_EQ(skips.stat(SHF_STAT_SKIPPED_SHARDS), 1U);
}

TEST_F(EngineMix, what_is_refused_leaves_the_parts_as_they_were) {
    const auto refused = [](Parts parts, const std::vector<double>& weights,
                            const Settings& settings, const char* why) {
        MixClient mix(parts, weights, settings);
        EXPECT_EQ(mix.code, SHF_E_USAGE);
        EXPECT_EQ(mix.stream, nullptr);
        EXPECT_NE(mix.message().find(why), std::string::npos) << mix.message();
        EXPECT_NE(mix.message().find("help: "), std::string::npos) << mix.message();
        return parts;
    };
    auto parts = refused(parts_of(large(), small()), {1, 0}, {}, "weight 1");
    EXPECT_EQ(parts[0]->keys().size(), 200U);
    EXPECT_EQ(parts[1]->keys().size(), 5U);
    refused({}, {}, {}, "no streams");
    refused(std::move(parts), {}, {}, "part 0 of the mix: samples were already taken");
    refused(parts_of(large(), small({{"batch", "3"}})), {}, {}, "part 1 of the mix");
    refused(parts_of(part("-")), {}, {{"until", "forever"}}, "standard input");
    auto twice = parts_of(large(), small());
    shf_stream* const own = twice[1]->stream;
    twice[1]->stream = twice[0]->stream;
    twice = refused(std::move(twice), {}, {}, "is two parts");
    twice[1]->stream = own;
    EXPECT_EQ(twice[0]->keys().size(), 200U);

    std::unique_ptr<Client> deep = small();
    for (size_t i = 0; i < shf::deepest_mix; ++i)
        deep = std::make_unique<MixClient>(parts_of(std::move(deep)), std::vector<double>{},
                                           Settings{});
    EXPECT_EQ(deep->code, SHF_OK) << deep->message();
    parts = refused(parts_of(std::move(deep)), {}, {}, "nested");
    parts[0]->keys(3);
    const State state = save(*parts[0]);
    EXPECT_EQ(parts[0]->keys().size(), 2U);
    deep = small();
    for (size_t i = 0; i < shf::deepest_mix; ++i)
        deep = std::make_unique<MixClient>(parts_of(std::move(deep)), std::vector<double>{},
                                           Settings{});
    EXPECT_EQ(restore(*deep, state), SHF_OK) << deep->message();
    EXPECT_EQ(deep->keys().size(), 2U);
}

TEST_F(EngineMix, waits_no_longer_than_the_timeout_and_ends_with_a_cancel) {
    const auto open = [&] { return parts_of(small(), part("pipe:sleep 100")); };
    for (const char* batch : {"0", "4"}) {
        MixClient mix(open(), {1, 1000}, {{"timeout", "100ms"}, {"batch", batch}});
        const auto call = [&] {
            batch == std::string("0") ? (void)mix.next() : (void)mix.next_batch();
        };
        call();
        EXPECT_EQ(mix.code, SHF_E_TIMEOUT) << mix.message();
        call();
        EXPECT_EQ(mix.code, SHF_E_TIMEOUT) << mix.message();
    }
    for (const char* batch : {"0", "4"}) {
        MixClient mix(open(), {1, 1000}, {{"batch", batch}});
        steady_clock::time_point cancelled;
        std::thread thread([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            cancelled = steady_clock::now();
            shf_stream_cancel(mix.stream);
        });
        batch == std::string("0") ? (void)mix.next() : (void)mix.next_batch();
        const auto took = steady_clock::now();
        thread.join();
        EXPECT_EQ(mix.code, SHF_E_CANCELLED) << mix.message();
        EXPECT_LT(took - cancelled, std::chrono::seconds(1));
    }
}

// Memory that a program gives to a part comes from the thread that is inside a call of the mix.
TEST_F(EngineMix, serves_the_allocators_of_its_parts) {
    struct Allocator {
        std::thread::id caller = std::this_thread::get_id();
        int64_t alive = 0, elsewhere = 0, all = 0;
    };
    for (const char* batch : {"0", "8"}) {
        Allocator allocator;
        {
            Parts parts;
            for (const char* name : {"{000..003}.tar", "{004..005}.tar"})
                parts.push_back(std::make_unique<Client>(
                    std::vector<std::string>{directory / name},
                    Settings{{"shuffle", "5"}, {"lanes", "2"}}, [&](shf_options* options) {
                        shf_options_set_allocator(
                            options,
                            [](void* ctx, size_t size, size_t alignment) {
                                auto& self = *static_cast<Allocator*>(ctx);
                                ++self.alive;
                                ++self.all;
                                if (std::this_thread::get_id() != self.caller) ++self.elsewhere;
                                return std::aligned_alloc(
                                    alignment, (size + alignment - 1) / alignment * alignment);
                            },
                            [](void* ctx, void* pointer, size_t) {
                                --static_cast<Allocator*>(ctx)->alive;
                                std::free(pointer);
                            },
                            &allocator);
                    }));
            Parts inner;
            inner.push_back(std::move(parts[0]));
            parts[0] =
                std::make_unique<MixClient>(std::move(inner), std::vector<double>{}, Settings{});
            MixClient mix(parts, {}, {{"batch", batch}, {"decode", "txt"}});
            size_t count = 0;
            if (batch == std::string("0")) {
                count = mix.keys().size();
            } else {
                while (const BatchHandle taken = mix.next_batch())
                    count += shf_batch_row_count(taken.get());
            }
            EXPECT_EQ(count, 260U);
            EXPECT_EQ(mix.code, SHF_END) << mix.message();
        }
        EXPECT_GT(allocator.all, 0);
        EXPECT_EQ(allocator.elsewhere, 0);
        EXPECT_EQ(allocator.alive, 0);
    }
}

// ---- Saving -------------------------------------------------------------------------------------

// A mix of random parts, perhaps nested; the same for the same seed.
std::unique_ptr<Client> random_mix(const TempDirectory& directory, unsigned seed,
                                   const Settings& more) {
    std::mt19937 dice(seed);
    const auto below = [&](unsigned bound) { return static_cast<unsigned>(dice() % bound); };
    const auto random_part = [&]() -> std::unique_ptr<Client> {
        static const char* const urls[] = {"{000..003}.tar", "{004..005}.tar", "006.tar"};
        Settings settings = {{"seed", std::to_string(below(3))},
                             {"shuffle", std::to_string(below(2) * below(40))},
                             {"lanes", std::to_string(1 + below(4))},
                             {"epochs", std::to_string(1 + below(2))},
                             {"threads", std::to_string(1 + below(3))},
                             {"shuffle_shards", below(2) ? "true" : "false"}};
        if (below(3) == 0) settings.emplace_back("epoch_samples", std::to_string(1 + below(90)));
        return part(directory / urls[below(3)], settings);
    };
    const auto random_weights = [&](size_t count) {
        std::vector<double> weights;
        for (size_t i = 0; i < count; ++i) weights.push_back(1 + static_cast<double>(below(9)));
        return weights;
    };
    const auto fill = [&](auto& self, unsigned depth) -> Parts {
        Parts parts;
        const unsigned count = 1 + below(4);
        for (unsigned i = 0; i < count; ++i) {
            if (depth < 2 && below(4) == 0) {
                Parts inner = self(self, depth + 1);
                const auto weights = random_weights(inner.size());
                parts.push_back(std::make_unique<MixClient>(
                    std::move(inner), weights, Settings{{"until", below(3) ? "all" : "first"}}));
            } else {
                parts.push_back(random_part());
            }
        }
        return parts;
    };
    Parts parts = fill(fill, 0);
    const auto weights = random_weights(parts.size());
    static const char* const ends[] = {"first", "all", "all", "forever"};
    auto mix = std::make_unique<MixClient>(
        std::move(parts), weights,
        Settings{{"seed", std::to_string(below(5))}, {"until", ends[below(4)]}} + more);
    EXPECT_EQ(mix->code, SHF_OK) << mix->message();
    return mix;
}

TEST_F(EngineMix, a_stop_leaves_no_trace) {
    for (unsigned seed = 0; seed < 100; seed += CASE_STRIDE) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        constexpr size_t most = 1500;
        const auto whole = random_mix(directory, seed, {})->keys(most);
        std::mt19937 dice(seed);
        std::vector<std::string> keys;
        State state;
        for (size_t stops = 0; stops < 6 && keys.size() < most; ++stops) {
            const auto client = random_mix(directory, seed, {});
            if (!state.empty()) {
                ASSERT_EQ(restore(*client, state), SHF_OK) << client->message();
            }
            size_t left = dice() % (whole.size() / 3 + 2), unread = 0;
            while (left > 0) {
                std::vector<std::string> some =
                    dice() % 2 ? client->keys(1) : block_of(*client, dice() % 50);
                if (some.empty()) break;
                const size_t used = std::min(left, some.size());
                unread = some.size() - used;
                left -= used;
                keys.insert(keys.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(used));
            }
            state = save(*client, unread);
            EXPECT_LT(state.size(), 32768U);
        }
        const auto client = random_mix(directory, seed, {});
        ASSERT_EQ(restore(*client, state), SHF_OK) << client->message();
        if (keys.size() < most) {
            const auto rest = client->keys(most - keys.size());
            keys.insert(keys.end(), rest.begin(), rest.end());
        }
        keys.resize(std::min(keys.size(), most));
        ASSERT_EQ(keys, whole);
    }
}

TEST_F(EngineMix, a_stop_between_batches_leaves_no_trace) {
    for (unsigned seed = 0; seed < 60; seed += CASE_STRIDE) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const auto open = [&] {
            auto client = random_mix(directory, seed,
                                     {{"batch", "13"}, {"decode", "txt"}, {"decode_threads", "2"}});
            return std::unique_ptr<BatchClient>(static_cast<BatchClient*>(client.release()));
        };
        const auto take = [](BatchClient& client, size_t batches) {
            std::vector<std::string> keys;
            while (batches-- > 0) {
                const auto some = batch_of(client);
                if (some.empty()) break;
                keys.insert(keys.end(), some.begin(), some.end());
            }
            return keys;
        };
        const auto whole = take(*open(), 60);
        std::mt19937 dice(seed);
        const size_t stop = dice() % 30;
        const auto client = open();
        auto keys = take(*client, stop);
        const State state = save(*client);
        const auto other = open();
        ASSERT_EQ(restore(*other, state), SHF_OK) << other->message();
        const auto rest = take(*other, 60 - stop);
        keys.insert(keys.end(), rest.begin(), rest.end());
        ASSERT_EQ(keys, whole);
    }
}

TEST_F(EngineMix, names_what_changed_since_it_was_saved) {
    const auto open = [&](const std::vector<double>& weights, const Settings& mixed,
                          const Settings& of_part) {
        return std::make_unique<MixClient>(parts_of(large(), middle(of_part)), weights, mixed);
    };
    const auto saved = open({3, 1}, {}, {});
    saved->keys(30);
    const State state = save(*saved);
    const auto rest = saved->keys();
    const auto refused = [&](std::unique_ptr<Client> client, const std::string& why) {
        EXPECT_EQ(restore(*client, state), SHF_E_USAGE);
        EXPECT_NE(client->message().find(why), std::string::npos) << client->message();
        EXPECT_NE(client->message().find("help: "), std::string::npos) << client->message();
        return client;
    };
    // The stream is as it was.
    EXPECT_EQ(refused(open({3, 2}, {}, {}), "weights=3:1, and this is weights=3:2")->keys().size(),
              260U);
    refused(open({3, 1}, {{"seed", "1"}}, {}), "seed=0");
    refused(open({3, 1}, {{"until", "first"}}, {}), "until=all");
    EXPECT_EQ(refused(open({3, 1}, {}, {{"shuffle", "9"}}),
                      "part 1 of the mix: the state was saved "
                      "with shuffle=0")
                  ->keys()
                  .size(),
              260U);
    refused(large(), "the state is of a mix of 2 streams, and this is a stream of shards");
    refused(std::make_unique<MixClient>(parts_of(large()), std::vector<double>{}, Settings{}),
            "of a mix of 2 streams, and this is a mix of 1 streams");
    auto same = open({0.75, 0.25}, {{"memory", "16MiB"}}, {{"threads", "3"}});
    EXPECT_EQ(restore(*same, state), SHF_OK) << same->message();
    EXPECT_EQ(same->keys(), rest);
}

// States of two ranks, for one, and back: no sample is lost or repeated.
TEST_F(EngineMix, states_of_ranks_are_merged_part_by_part) {
    const auto open = [&](uint64_t ranks, uint64_t rank) {
        const Settings who = {
            {"lanes", "2"}, {"world_size", std::to_string(ranks)}, {"rank", std::to_string(rank)}};
        return std::make_unique<MixClient>(
            parts_of(large(who + Settings{{"shuffle", "12"}}), middle(who)),
            std::vector<double>{3, 1}, Settings{});
    };
    const auto first = open(2, 0), second = open(2, 1);
    auto keys = first->keys(40);
    for (const auto& key : second->keys(40)) keys.push_back(key);
    const State merged = merge({save(*first), save(*second)});
    const auto one = open(1, 0);
    ASSERT_EQ(restore(*one, merged), SHF_OK) << one->message();
    for (const auto& key : one->keys(30)) keys.push_back(key);
    const State dealt = merge({save(*one)});
    for (uint64_t rank = 0; rank < 2; ++rank) {
        const auto client = open(2, rank);
        ASSERT_EQ(restore(*client, dealt), SHF_OK) << client->message();
        for (const auto& key : client->keys()) keys.push_back(key);
        EXPECT_EQ(client->code, SHF_END) << client->message();
    }
    std::sort(keys.begin(), keys.end());
    auto all = large()->keys();
    for (const auto& key : middle()->keys()) all.push_back(key);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(keys, all);
    // The ranks of a merged state of the same number go on as if nothing had been.
    for (uint64_t rank = 0; rank < 2; ++rank) {
        const auto client = open(2, rank);
        ASSERT_EQ(restore(*client, merged), SHF_OK) << client->message();
        EXPECT_EQ(client->keys(), (rank == 0 ? first : second)->keys());
    }
}

TEST_F(EngineMix, refuses_states_that_nest_too_deep) {
    shf::StreamState state;
    for (unsigned depth = 0; depth < shf::deepest_mix; ++depth) {
        shf::StreamState outer;
        outer.parts.push_back(std::move(state));
        state = std::move(outer);
    }
    EXPECT_NO_THROW((void)shf::decode_state(shf::encode(state)));
    shf::StreamState outer;
    outer.parts.push_back(std::move(state));
    EXPECT_THROW((void)shf::decode_state(shf::encode(outer)), shf::Error);
}

// Bytes of a part that was damaged, under a checksum that fits: an error, never a crash.
TEST_F(EngineMix, damaged_parts_of_a_state_are_harmless) {
    MixClient mix(parts_of(large({{"shuffle", "9"}}), middle()), {}, {});
    mix.keys(50);
    const State state = save(mix);
    std::mt19937 dice(1);
    for (size_t i = 0; i < 500; ++i) {
        shf::StreamState hostile = shf::decode_state(state);
        shf::StreamState& part = hostile.parts[dice() % 2];
        switch (dice() % 6) {
            case 0: part.position.lanes.clear(); break;
            case 1: part.position.lanes[0].taken = dice(); break;
            case 2: part.position.lanes[0].put = dice() % 300; break;
            case 3: part.position.mixed = dice(); break;
            case 4: part.parts.resize(dice() % 3); break;
            case 5: hostile.parts.resize(dice() % 4); break;
        }
        MixClient other(parts_of(large({{"shuffle", "9"}}), middle()), {}, {});
        const int32_t code = restore(other, shf::encode(hostile));
        other.keys(20);
        if (code != SHF_OK) {
            EXPECT_EQ(other.code, SHF_OK) << "a refused state leaves no trace";
        }
    }
}

}  // namespace
