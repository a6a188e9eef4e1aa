// by_index=true: the order of an epoch is computed from indexes, and samples are read at their
// places. The sequence is that of streams which read shards from front to back; what is dealt out
// are its elements.
#include "filter_encoders.h"
#include "resume_client.h"
#include "zip_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace shf::test;
using Keys = std::vector<std::string>;

std::string text(uint64_t number) {
    return std::to_string(number);
}

void index_shard(const std::string& url) {
    shf_error error = {};
    ASSERT_EQ(shf_index_build(url.c_str(), nullptr, &error), SHF_OK) << error.message;
}

class EngineByIndex : public testing::Test {
  protected:
    // Shards with so many samples, each with its index.
    void write(const std::vector<uint64_t>& counts, size_t size = 0) {
        urls = write_shards(directory, counts, size);
        for (const std::string& url : urls) index_shard(url);
        total = 0;
        for (const uint64_t count : counts) total += count;
    }
    [[nodiscard]] Keys keys(const Settings& settings) const {
        Client client(urls, settings);
        EXPECT_EQ(client.code, SHF_OK) << client.message();
        Keys keys = client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return keys;
    }
    static Settings rank(uint64_t r, uint64_t ranks) {
        return {{"by_index", "true"}, {"rank", text(r)}, {"world_size", text(ranks)}};
    }
    static Settings worker(uint64_t w, uint64_t workers) {
        return {{"worker", text(w)}, {"num_workers", text(workers)}};
    }
    // The batches of a stream, or some of them.
    static std::vector<Keys> batches(BatchClient& client, size_t most = SIZE_MAX) {
        std::vector<Keys> all;
        while (all.size() < most) {
            Keys batch = batch_of(client);
            if (client.code != SHF_OK) break;
            all.push_back(std::move(batch));
        }
        return all;
    }

    TempDirectory directory;
    std::vector<std::string> urls;
    uint64_t total = 0;
    const Watchdog watchdog{300};
};

const std::vector<uint64_t> uneven{40, 3, 17, 90, 1, 25, 60, 8, 33, 2, 71, 12};

const Settings ways[] = {
    {},
    {{"shuffle", "40"}},
    {{"lanes", "5"}},
    {{"lanes", "12"}, {"shuffle", "10"}, {"shuffle_shards", "true"}, {"seed", "3"}},
    {{"lanes", "3"}, {"shuffle", "500"}, {"shuffle_shards", "true"}, {"epochs", "3"}},
    {{"slice", "1::2"}, {"lanes", "4"}},
    {{"select_keys", "*[0-4]"}, {"shuffle", "7"}},
    {{"fields", "txt"}, {"epoch", "4"}, {"shuffle_shards", "true"}},
};

TEST_F(EngineByIndex, the_sequence_is_that_of_reading_from_front_to_back) {
    write(uneven);
    for (const Settings& way : ways) {
        const Keys plain = keys(way);
        ASSERT_GT(plain.size(), 100U);
        for (const char* threads : {"1", "3"})
            EXPECT_EQ(keys(way + Settings{{"by_index", "true"}, {"threads", threads}}), plain);
        Client blocks(urls, way + Settings{{"by_index", "true"}});
        EXPECT_EQ(blocks.block_keys(7), plain);
    }
}

TEST_F(EngineByIndex, a_rank_has_every_nth_element_for_any_number_of_ranks) {
    write(uneven);
    const Settings way{{"lanes", "4"}, {"shuffle", "20"}, {"shuffle_shards", "true"}};
    const Keys all = keys(way);
    for (const uint64_t ranks : {2U, 3U, 4U, 7U, 16U})
        for (uint64_t r = 0; r < ranks; ++r) {
            Keys expected;
            for (size_t t = r; t < all.size(); t += ranks) expected.push_back(all[t]);
            EXPECT_EQ(keys(way + rank(r, ranks)), expected) << r << " of " << ranks;
        }
}

TEST_F(EngineByIndex, batches_are_the_same_with_any_number_of_workers) {
    write(uneven);
    for (const char* last : {"keep", "drop"})
        for (const char* even : {"none", "drop", "pad"})
            for (uint64_t r = 0; r < 3; ++r) {
                const Settings settings = rank(r, 3) + Settings{{"batch", "8"},
                                                                {"last", last},
                                                                {"even", even},
                                                                {"decode", "txt:bytes"},
                                                                {"shuffle", "50"}};
                BatchClient alone(urls, settings);
                const std::vector<Keys> expected = batches(alone);
                EXPECT_EQ(alone.code, SHF_END) << alone.message();
                for (const uint64_t workers : {2U, 3U, 5U}) {
                    std::vector<std::vector<Keys>> parts;
                    for (uint64_t w = 0; w < workers; ++w) {
                        BatchClient part(urls, settings + worker(w, workers));
                        parts.push_back(batches(part));
                        EXPECT_EQ(part.code, SHF_END) << part.message();
                    }
                    // As a DataLoader asks its workers in turn.
                    std::vector<Keys> got;
                    for (size_t i = 0; got.size() < expected.size(); ++i) {
                        const auto& part = parts[i % workers];
                        ASSERT_LT(i / workers, part.size());
                        got.push_back(part[i / workers]);
                    }
                    EXPECT_EQ(got, expected) << workers;
                }
            }
}

TEST_F(EngineByIndex, samples_of_workers_come_in_turn) {
    write(uneven);
    const Keys all = keys({{"shuffle", "30"}, {"by_index", "true"}});
    for (uint64_t w = 0; w < 3; ++w) {
        Keys expected;
        for (size_t i = w; i < all.size(); i += 3) expected.push_back(all[i]);
        EXPECT_EQ(keys(Settings{{"shuffle", "30"}, {"by_index", "true"}} + worker(w, 3)), expected);
    }
}

TEST_F(EngineByIndex, even_divides_by_samples) {
    write(uneven);
    for (const uint64_t ranks : {1U, 2U, 3U, 5U, 11U, 40U})
        for (const char* even : {"drop", "pad"}) {
            std::multiset<std::string> seen;
            size_t marked = 0;
            for (uint64_t r = 0; r < ranks; ++r) {
                BatchClient client(urls, rank(r, ranks) + Settings{{"even", even},
                                                                   {"batch", "16"},
                                                                   {"decode", "txt:bytes"},
                                                                   {"shuffle", "9"}});
                const uint64_t promised = client.stat(SHF_STAT_EPOCH_SAMPLES);
                size_t rows = 0;
                while (const BatchHandle batch = client.next_batch()) {
                    for (size_t i = 0; i < shf_batch_row_count(batch.get()); ++i, ++rows) {
                        seen.insert(text_of(column(batch, "__key__"), i));
                        size_t index = 0;
                        if (shf_batch_find(batch.get(), "__valid__", 9, &index) == SHF_OK)
                            marked += row_of<uint8_t>(column(batch, "__valid__"), i)[0] == 0;
                    }
                }
                EXPECT_EQ(client.code, SHF_END) << client.message();
                EXPECT_EQ(rows, promised);
                EXPECT_EQ(rows, even == std::string("drop") ? total / ranks
                                                            : (total + ranks - 1) / ranks);
            }
            const size_t over = (total + ranks - 1) / ranks * ranks - total;
            EXPECT_EQ(marked, even == std::string("drop") ? 0 : over);
            const std::set<std::string> different(seen.begin(), seen.end());
            EXPECT_EQ(different.size(),
                      even == std::string("drop") ? total / ranks * ranks : total);
        }
}

TEST_F(EngineByIndex, resumes_at_every_sample) {
    write(uneven);
    std::mt19937 random(5);
    for (const Settings& way : ways) {
        const Settings settings = way + rank(1, 2);
        const Keys whole = keys(settings);
        Keys got;
        State state;
        for (bool more = true; more;) {
            Client part(urls, settings);
            if (!state.empty()) {
                ASSERT_EQ(restore(part, state), SHF_OK) << part.message();
            }
            const Keys some = random() % 2 ? part.keys(random() % 40) : block_of(part, 25);
            got.insert(got.end(), some.begin(), some.end());
            more = part.code == SHF_OK;
            state = save(part);
        }
        EXPECT_EQ(got, whole);
    }
}

TEST_F(EngineByIndex, limit_is_of_the_sequence) {
    write(uneven);
    const Keys all = keys({{"lanes", "5"}, {"shuffle", "9"}});
    const Settings settings =
        Settings{{"lanes", "5"}, {"shuffle", "9"}, {"limit", "101"}} + rank(1, 2);
    Keys expected;
    for (size_t t = 1; t < 101; t += 2) expected.push_back(all[t]);
    EXPECT_EQ(keys(settings), expected);
    Client first(urls, settings), second(urls, settings);
    EXPECT_EQ(first.keys(20).size(), 20U);
    ASSERT_EQ(restore(second, save(first)), SHF_OK) << second.message();
    EXPECT_EQ(second.keys(), Keys(expected.begin() + 20, expected.end()));
}

TEST_F(EngineByIndex, workers_resume_their_batches) {
    write(uneven);
    const Settings settings =
        rank(1, 2) + Settings{{"batch", "8"}, {"decode", "txt:bytes"}, {"shuffle", "50"}};
    BatchClient alone(urls, settings);
    const std::vector<Keys> expected = batches(alone);
    for (const size_t before : {0U, 1U, 2U, 5U, 9U}) {
        std::vector<std::vector<Keys>> parts;
        for (uint64_t w = 0; w < 2; ++w) {
            BatchClient first(urls, settings + worker(w, 2));
            parts.push_back(batches(first, before));
            BatchClient second(urls, settings + worker(w, 2));
            ASSERT_EQ(restore(second, save(first)), SHF_OK) << second.message();
            for (Keys& batch : batches(second)) parts.back().push_back(std::move(batch));
        }
        std::vector<Keys> got;
        for (size_t i = 0; got.size() < expected.size(); ++i) got.push_back(parts[i % 2][i / 2]);
        EXPECT_EQ(got, expected);
    }
}

// Steps of all ranks on `ranks` of them, then the rest on `others`.
TEST_F(EngineByIndex, another_number_of_ranks_and_workers_takes_over_in_mid_epoch) {
    write(uneven);
    struct Change {
        uint64_t ranks, workers, other_ranks, other_workers, steps;
    };
    const Change changes[] = {{2, 1, 3, 1, 5}, {3, 1, 2, 1, 1}, {1, 1, 4, 2, 7},
                              {4, 2, 1, 1, 2}, {2, 2, 2, 3, 4}, {3, 2, 5, 1, 2},
                              {2, 1, 1, 1, 0}, {5, 1, 5, 2, 3}, {2, 1, 3, 1, 200}};
    for (const char* even : {"none", "drop", "pad"})
        for (const Change& change : changes) {
            const Settings settings{{"batch", "8"},      {"decode", "txt:bytes"}, {"lanes", "4"},
                                    {"shuffle", "20"},   {"even", even},          {"seed", "9"},
                                    {"by_index", "true"}};
            std::multiset<std::string> seen;
            const auto note = [&](const std::vector<Keys>& all) {
                for (const Keys& batch : all) seen.insert(batch.begin(), batch.end());
            };
            std::vector<State> states;
            for (uint64_t r = 0; r < change.ranks; ++r)
                for (uint64_t w = 0; w < change.workers; ++w) {
                    BatchClient client(
                        urls, settings + rank(r, change.ranks) + worker(w, change.workers));
                    note(batches(client, change.steps));
                    states.push_back(save(client));
                }
            const State merged = merge(states);
            std::set<size_t> rests;
            for (uint64_t r = 0; r < change.other_ranks; ++r) {
                std::vector<std::vector<Keys>> parts;
                size_t rest = 0;
                for (uint64_t w = 0; w < change.other_workers; ++w) {
                    BatchClient client(urls, settings + rank(r, change.other_ranks) +
                                                 worker(w, change.other_workers));
                    ASSERT_EQ(restore(client, merged), SHF_OK) << client.message();
                    parts.push_back(batches(client));
                    EXPECT_EQ(client.code, SHF_END) << client.message();
                    note(parts.back());
                    for (const Keys& batch : parts.back()) rest += batch.size();
                }
                rests.insert(rest);
                // Whole batches, but for the last one of the rank.
                size_t short_ones = 0;
                for (const auto& part : parts)
                    for (const Keys& batch : part) short_ones += batch.size() < 8 ? 1 : 0;
                EXPECT_LE(short_ones, 1U);
            }
            EXPECT_LE(*rests.rbegin() - *rests.begin(), 1U);
            const std::set<std::string> different(seen.begin(), seen.end());
            if (std::string(even) == "drop") {
                EXPECT_EQ(different.size(), seen.size());
                EXPECT_GT(seen.size() + change.ranks + change.other_ranks, total);
            } else {
                EXPECT_EQ(different.size(), total);
                EXPECT_LT(seen.size(), total + change.ranks + change.other_ranks);
            }
        }
}

TEST_F(EngineByIndex, states_of_different_steps_are_for_their_own_consumers_alone) {
    write(uneven);
    const Settings way{{"lanes", "6"}, {"shuffle", "20"}};
    std::vector<State> states;
    for (uint64_t r = 0; r < 2; ++r) {
        Client client(urls, way + rank(r, 2));
        EXPECT_EQ(client.keys(10 + 3 * r).size(), 10 + 3 * r);
        states.push_back(save(client));
    }
    const State merged = merge(states);
    const Keys whole = keys(way + rank(1, 2));
    Client same(urls, way + rank(1, 2));
    ASSERT_EQ(restore(same, merged), SHF_OK) << same.message();
    EXPECT_EQ(same.keys(), Keys(whole.begin() + 13, whole.end()));
    Client other(urls, way + rank(1, 3));
    EXPECT_EQ(restore(other, merged), SHF_E_USAGE);
    EXPECT_NE(other.message().find("same step"), std::string::npos) << other.message();
    Client alone(urls, way + rank(0, 3));
    EXPECT_EQ(restore(alone, states[0]), SHF_E_USAGE);
    EXPECT_NE(alone.message().find("merge"), std::string::npos) << alone.message();
    Client plain(urls, way + Settings{{"rank", "0"}, {"world_size", "2"}});
    EXPECT_EQ(restore(plain, states[0]), SHF_E_USAGE);
    EXPECT_NE(plain.message().find("by_index"), std::string::npos) << plain.message();
}

TEST_F(EngineByIndex, zip_and_compressed_shards) {
    write({30, 20});
    std::string tar = shard_bytes(2, 400, 20'000);
    directory.write("002.tar.gz", gzip(tar));
    directory.write("003.tar.zst", compress("zstd", shard_bytes(3, 50, 3000)));
    Zip zip;
    for (uint64_t i = 0; i < 25; ++i)
        zip.entries.push_back({.name = sample_key(4, i) + ".txt", .data = sample_key(4, i)});
    directory.write("004.zip", zip.bytes());
    for (const char* name : {"002.tar.gz", "003.tar.zst"}) {
        urls.push_back(directory / name);
        index_shard(urls.back());
    }
    urls.push_back(directory / "004.zip");
    for (const Settings& way : {ways[0], ways[1], ways[3]})
        EXPECT_EQ(keys(way + Settings{{"by_index", "true"}, {"threads", "4"}}), keys(way));
}

TEST_F(EngineByIndex, many_shards_are_opened_and_closed) {
    write(std::vector<uint64_t>(150, 6));
    const Settings way{{"shuffle", "2000"}, {"shuffle_shards", "true"}, {"epochs", "2"}};
    EXPECT_EQ(keys(way + Settings{{"by_index", "true"}, {"threads", "4"}}), keys(way));
}

TEST_F(EngineByIndex, damage_is_an_error_or_skipped_in_its_place) {
    write({40, 30}, 9000);
    const Keys whole = keys({{"shuffle", "10"}});
    {
        // As a disk does it, after the index was made: the time of the file is the same.
        const auto time = std::filesystem::last_write_time(urls[1]);
        std::fstream file(urls[1], std::ios::in | std::ios::out | std::ios::binary);
        file.seekp((512 + 9216) * 15 + 100);  // in the header of sample 15, where no index looks
        file.put('9');
        file.close();
        std::filesystem::last_write_time(urls[1], time);
    }
    const std::string bad = sample_key(1, 15);
    const auto place =
        static_cast<size_t>(std::find(whole.begin(), whole.end(), bad) - whole.begin());
    Client raises(urls, {{"shuffle", "10"}, {"by_index", "true"}});
    EXPECT_EQ(raises.keys(),
              Keys(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(place)));
    EXPECT_EQ(raises.code, SHF_E_FORMAT) << raises.message();
    EXPECT_NE(raises.message().find("001.tar"), std::string::npos) << raises.message();
    EXPECT_NE(raises.message().find(bad), std::string::npos) << raises.message();
    EXPECT_EQ(raises.error.offset, (512U + 9216U) * 15);
    Keys rest = whole;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(place));
    const Settings skips{{"shuffle", "10"}, {"by_index", "true"}, {"on_error", "skip_sample"}};
    Client skipping(urls, skips);
    EXPECT_EQ(skipping.keys(), rest);
    EXPECT_EQ(skipping.code, SHF_END) << skipping.message();
    EXPECT_EQ(skipping.stat(SHF_STAT_SKIPPED_SAMPLES), 1U);
    // Wherever it is stopped.
    for (const size_t before : {place - 2, place - 1, place, place + 1, place + 2}) {
        Client first(urls, skips);
        EXPECT_EQ(first.keys(before).size(), before);
        Client second(urls, skips);
        ASSERT_EQ(restore(second, save(first)), SHF_OK) << second.message();
        EXPECT_EQ(second.keys(),
                  Keys(rest.begin() + static_cast<std::ptrdiff_t>(before), rest.end()));
    }
}

// After a skip a position is not the same number of elements for every rank.
TEST_F(EngineByIndex, a_state_with_skips_is_for_its_own_consumers_alone) {
    write({40, 30}, 9000);
    const auto time = std::filesystem::last_write_time(urls[1]);
    std::fstream file(urls[1], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((512 + 9216) * 15 + 100);
    file.put('9');
    file.close();
    std::filesystem::last_write_time(urls[1], time);
    const Settings skips{{"lanes", "1"}, {"on_error", "skip_sample"}};
    std::vector<State> states;
    for (uint64_t r = 0; r < 2; ++r) {
        Client client(urls, skips + rank(r, 2));
        EXPECT_EQ(client.keys(30).size(), 30U);
        states.push_back(save(client));
    }
    const State merged = merge(states);
    for (uint64_t r = 0; r < 2; ++r) {
        const Keys all = keys(skips + rank(r, 2));
        Client same(urls, skips + rank(r, 2));
        ASSERT_EQ(restore(same, merged), SHF_OK) << same.message();
        EXPECT_EQ(same.keys(), Keys(all.begin() + 30, all.end()));
    }
    Client other(urls, skips + rank(0, 3));
    EXPECT_EQ(restore(other, merged), SHF_E_USAGE);
    EXPECT_NE(other.message().find("skipped"), std::string::npos) << other.message();
}

TEST_F(EngineByIndex, states_of_other_runs_are_not_merged) {
    write({40, 30});
    const auto state_of = [&](uint64_t r, uint64_t w, uint64_t ranks, const char* batch) {
        BatchClient client(urls,
                           rank(r, ranks) + worker(w, 6 / ranks) +
                               Settings{{"batch", batch}, {"decode", "txt:bytes"}, {"lanes", "1"}});
        EXPECT_EQ(client.code, SHF_OK) << client.message();
        return save(client);
    };
    const State one = state_of(0, 0, 2, "4");
    for (const State& other : {state_of(1, 0, 3, "4"), state_of(0, 1, 2, "8")}) {
        const shf_bytes parts[] = {{one.data(), one.size()}, {other.data(), other.size()}};
        shf_state* merged = nullptr;
        shf_error error = {};
        EXPECT_EQ(shf_state_merge(parts, 2, &merged, &error), SHF_E_USAGE);
        EXPECT_NE(std::string(error.message).find("the states are of runs with"), std::string::npos)
            << error.message;
    }
}

TEST_F(EngineByIndex, a_state_of_more_samples_is_refused) {
    write({40, 30});
    Client first(urls, rank(0, 1));
    EXPECT_EQ(first.keys(5).size(), 5U);
    const State state = save(first);
    write({40, 20});
    Client second(urls, rank(0, 1));
    EXPECT_EQ(restore(second, state), SHF_E_CHANGED);
    EXPECT_NE(second.message().find("70 samples"), std::string::npos) << second.message();
}

struct OwnMemory {
    std::map<const uint8_t*, size_t> pieces;
    [[nodiscard]] bool has(const uint8_t* at) const {
        const auto after = pieces.upper_bound(at);
        return after != pieces.begin() && at < std::prev(after)->first + std::prev(after)->second;
    }
};

void* take(void* ctx, size_t size, size_t alignment) {
    void* const memory =
        std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    static_cast<OwnMemory*>(ctx)->pieces[static_cast<uint8_t*>(memory)] = size;
    return memory;
}
void let_go(void* ctx, void* memory, size_t /*size*/) {
    static_cast<OwnMemory*>(ctx)->pieces.erase(static_cast<uint8_t*>(memory));
    std::free(memory);
}

TEST_F(EngineByIndex, payload_lies_where_the_program_says) {
    write({40, 30}, 3000);
    OwnMemory memory;
    {
        Client client(urls, {{"by_index", "true"}, {"shuffle", "10"}}, [&](shf_options* options) {
            shf_options_set_allocator(options, take, let_go, &memory);
        });
        for (int i = 0; i < 70; ++i) {
            const SampleHandle sample = client.next();
            ASSERT_TRUE(sample) << client.message();
            ASSERT_TRUE(is_whole(sample.get()));
            shf_bytes text;
            ASSERT_EQ(shf_sample_find(sample.get(), "txt", 3, &text), SHF_OK);
            EXPECT_TRUE(memory.has(text.data));
        }
    }
    EXPECT_TRUE(memory.pieces.empty());
}

// Shards stay open as long as memory allows: a large shuffle goes through all of them.
TEST_F(EngineByIndex, a_large_shuffle_opens_each_shard_once) {
    write(std::vector<uint64_t>(200, 5));
    Client client(urls, {{"by_index", "true"}, {"shuffle", "1000"}, {"threads", "1"}});
    const auto opened = [] {
        std::ifstream io("/proc/self/io");
        std::string name;
        uint64_t value = 0, calls = 0;
        while (io >> name >> value)
            if (name == "syscr:") calls = value;
        return calls;
    };
    const uint64_t before = opened();
    EXPECT_EQ(client.keys().size(), 1000U);
    // Some reads for the index and the head of each shard, and one for each sample.
    EXPECT_LT(opened() - before, 200 * 16 + 1000 * 2);
}

TEST_F(EngineByIndex, says_what_it_needs) {
    write({40, 30});
    const auto refused = [&](const Settings& settings, int32_t code, const char* part) {
        Client client(urls, settings + Settings{{"by_index", "true"}});
        EXPECT_EQ(client.code, code) << client.message();
        EXPECT_NE(client.message().find(part), std::string::npos) << client.message();
    };
    refused({{"epoch_samples", "9"}}, SHF_E_USAGE, "even=drop");
    refused({{"resample", "true"}}, SHF_E_USAGE, "even=drop");
    refused({{"on_error", "skip_shard"}}, SHF_E_USAGE, "skip_sample");
    const Settings of_workers = worker(0, 2) + Settings{{"batch", "4"}};
    refused(of_workers + Settings{{"epochs", "2"}}, SHF_E_USAGE, "epochs=1");
    refused(of_workers + Settings{{"pack", "64"}}, SHF_E_USAGE, "threads");
    refused({{"even", "drop"}, {"rank", "0"}, {"world_size", "71"}}, SHF_E_USAGE, "70 samples");
    directory.write("bare.tar", shard_bytes(7, 3));
    urls.push_back(directory / "bare.tar");
    refused({}, SHF_E_NOT_FOUND, "leave out by_index");
    urls.pop_back();
    urls[0] = "pipe:cat " + urls[0];
    refused({}, SHF_E_USAGE, "leave out by_index");
}

TEST_F(EngineByIndex, is_no_part_of_a_mix) {
    write({40, 30});
    Client plain(urls, {}), indexed(urls, {{"by_index", "true"}});
    shf_stream* const parts[] = {plain.stream, indexed.stream};
    shf_stream* mix = nullptr;
    shf_error error = {};
    EXPECT_EQ(shf_stream_mix(&mix, parts, nullptr, 2, nullptr, &error), SHF_E_USAGE);
    EXPECT_NE(std::string(error.message).find("part 1 of the mix: by_index"), std::string::npos)
        << error.message;
}

// What is read ahead stays within bounds, and a stream can be closed at any time.
TEST_F(EngineByIndex, large_samples_are_read_ahead_within_bounds) {
    write({12, 12}, 3 << 20);
    const Settings settings{{"by_index", "true"}, {"memory", "8MiB"}, {"threads", "4"}};
    Client client(urls, settings);
    for (int i = 0; i < 24; ++i) {
        const SampleHandle sample = client.next();
        ASSERT_TRUE(sample) << client.message();
        EXPECT_TRUE(is_whole(sample.get()));
        EXPECT_LE(client.stat(SHF_STAT_MEMORY), 20U << 20);
    }
    EXPECT_FALSE(client.next());
    for (size_t taken = 0; taken < 6; ++taken) {
        Client closed(urls, settings);
        EXPECT_EQ(closed.keys(taken).size(), taken);
    }
}

// A run of the field: many shards, ranks and lanes, without a byte.
TEST_F(EngineByIndex, a_restored_epoch_of_many_samples_starts_at_once) {
    write(std::vector<uint64_t>(20, 1000));
    const Settings way{{"shuffle", "5000"}, {"lanes", "4"}};
    const Keys whole = keys(way);
    Client first(urls, way + rank(0, 1));
    EXPECT_EQ(first.keys(19'000).size(), 19'000U);
    Client second(urls, way + rank(0, 1));
    ASSERT_EQ(restore(second, save(first)), SHF_OK) << second.message();
    EXPECT_EQ(second.keys(), Keys(whole.begin() + 19'000, whole.end()));
}

}  // namespace
