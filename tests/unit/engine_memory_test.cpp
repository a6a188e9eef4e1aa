// The four memory traps: pinning, starvation, the user who keeps everything, fresh memory.
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

constexpr uint64_t MiB = 1 << 20;
// The promise for a kept sample: this much and 8 times its own size.
constexpr uint64_t allowance = 64 * 1024;

// An allocator that counts what is alive, so that a bound can be checked to the byte.
struct Ledger {
    std::mutex mutex;
    uint64_t live = 0, peak = 0, pieces = 0;
};

void* ledger_alloc(void* ctx, size_t size, size_t alignment) {
    auto* ledger = static_cast<Ledger*>(ctx);
    const std::lock_guard lock(ledger->mutex);
    ledger->live += size;
    ledger->peak = std::max(ledger->peak, ledger->live);
    ++ledger->pieces;
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void ledger_free(void* ctx, void* data, size_t size) {
    auto* ledger = static_cast<Ledger*>(ctx);
    const std::lock_guard lock(ledger->mutex);
    ledger->live -= size;
    --ledger->pieces;
    std::free(data);
}
std::function<void(shf_options*)> counting(Ledger& ledger) {
    return [&ledger](shf_options* options) {
        shf_options_set_allocator(options, ledger_alloc, ledger_free, &ledger);
    };
}

uint64_t payload_of(const shf_sample* sample) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
        shf_bytes data;
        shf_sample_field(sample, i, nullptr, &data);
        bytes += data.size;
    }
    return bytes;
}

class EngineMemory : public testing::Test {
  protected:
    const Watchdog watchdog{300};
    const TempDirectory directory;
};

// Trap 1, to the byte: after the stream is closed, what is alive is what the kept samples hold.
TEST_F(EngineMemory, a_kept_sample_holds_no_more_than_promised) {
    for (const size_t size : {1U, 100U, 1000U, 2047U, 2049U, 5000U, 20000U, 65000U, 300000U}) {
        // Neighbours of very different sizes, because a sample must not pin a large neighbour
        // either.
        std::string shard;
        for (uint64_t i = 0; i < 60; ++i) shard += sample_members(0, i, i % 4 == 3 ? 200000 : size);
        directory.write("a.tar", shard + end_marker());
        for (const Settings& order :
             {Settings{}, Settings{{"lanes", "2"}}, Settings{{"shuffle", "20"}}})
            for (const bool blocks : {false, true})
                for (const size_t step : {1U, 7U, 59U}) {
                    Ledger ledger;
                    std::vector<SampleHandle> kept;
                    {
                        Client client({directory / "a.tar", directory / "a.tar"}, order,
                                      counting(ledger));
                        size_t count = 0;
                        const auto keep = [&](shf_sample* sample) {
                            if (count++ % step == 0) kept.emplace_back(shf_sample_ref(sample));
                        };
                        if (blocks) {
                            shf_block* block = nullptr;
                            while (shf_stream_next_block(client.stream, 0, &block, &client.error) ==
                                   SHF_OK) {
                                for (size_t i = 0; i < shf_block_sample_count(block); ++i)
                                    keep(shf_block_sample(block, i));
                                shf_block_unref(block);
                            }
                        } else {
                            while (const SampleHandle sample = client.next()) keep(sample.get());
                        }
                        ASSERT_EQ(count, 120U) << size << " bytes: " << client.message();
                    }
                    uint64_t bound = 0;
                    for (const SampleHandle& sample : kept)
                        bound += allowance + 8 * payload_of(sample.get());
                    EXPECT_LE(ledger.live, bound) << size << " bytes, every " << step;
                    // One alone, whichever it is.
                    while (!kept.empty()) {
                        if (kept.size() == 1) {
                            EXPECT_LE(ledger.live, allowance + 8 * payload_of(kept[0].get()));
                        }
                        kept.pop_back();
                    }
                    EXPECT_EQ(ledger.live, 0U);
                }
    }
}

// Trap 1 on a long stream: every 1,000th sample of 2 GB of tiny ones is kept.
TEST_F(EngineMemory, every_thousandth_tiny_sample_of_two_gigabytes) {
    std::string shard;
    for (int i = 0; i < 5000; ++i) {
        const std::string key = sample_key(0, static_cast<uint64_t>(i));
        shard += member(key + ".cls", "7") +
                 member(key + ".json", "{\"label\": 7, \"id\": \"" + key + "\"}");
    }
    directory.write("a.tar", shard + end_marker());
    const uint64_t epochs = (uint64_t{2} << 30) / shard.size() + 1;
    for (const bool blocks : {false, true}) {
        if (SANITIZED && blocks) break;  // slow, and their own memory hides ours
        std::vector<SampleHandle> kept;
        const uint64_t before = resident_bytes();
        Client client(directory / "a.tar",
                      {{"epochs", std::to_string(SANITIZED ? 20 : epochs)}, {"memory", "32MiB"}});
        uint64_t count = 0;
        if (blocks) {
            shf_block* block = nullptr;
            while (shf_stream_next_block(client.stream, 0, &block, &client.error) == SHF_OK) {
                for (size_t i = 0; i < shf_block_sample_count(block); ++i)
                    if (count++ % 1000 == 0)
                        kept.emplace_back(shf_sample_ref(shf_block_sample(block, i)));
                shf_block_unref(block);
            }
        } else {
            while (SampleHandle sample = client.next())
                if (count++ % 1000 == 0) kept.push_back(std::move(sample));
        }
        EXPECT_EQ(count, (SANITIZED ? 20 : epochs) * 5000);
        if (!SANITIZED) {
            EXPECT_LE(resident_bytes(), before + kept.size() * (allowance + 8 * 60) + 32 * MiB);
        }
        EXPECT_LE(client.stat(SHF_STAT_MEMORY_PEAK), 32 * MiB);
        for (const SampleHandle& sample : kept) EXPECT_EQ(shf_sample_field_count(sample.get()), 2U);
    }
}

// Trap 3: what was handed out belongs to the user and leaves the budget.
TEST_F(EngineMemory, everything_is_kept_with_a_tenth_as_budget) {
    for (const size_t size : {50U, 3000U, 100000U, 900000U}) {
        const uint64_t samples = 40 * MiB / (size + 1024);
        write_shards(directory, {samples / 4, samples / 4, samples / 4, samples / 4}, size);
        for (const Settings& order :
             {Settings{}, Settings{{"lanes", "4"}}, Settings{{"threads", "4"}},
              Settings{{"shuffle", size > 50000 ? "2" : "8"}}}) {
            Client client(directory / "{000..003}.tar", order + Settings{{"memory", "4MiB"}});
            std::vector<SampleHandle> kept;
            while (SampleHandle sample = client.next()) kept.push_back(std::move(sample));
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(kept.size(), samples / 4 * 4);
            // Running ahead is bounded on its own; one sample that is waited for may come on top.
            EXPECT_LE(client.stat(SHF_STAT_MEMORY_PEAK), 4 * MiB + 32 * MiB);
            for (const SampleHandle& sample : kept) ASSERT_TRUE(is_whole(sample.get()));
        }
        std::vector<shf_block*> kept;
        Client client(directory / "{000..003}.tar", {{"memory", "4MiB"}});
        uint64_t count = 0;
        for (shf_block* block;
             shf_stream_next_block(client.stream, 0, &block, nullptr) == SHF_OK;) {
            kept.push_back(block);
            count += shf_block_sample_count(block);
        }
        EXPECT_EQ(count, samples / 4 * 4);
        for (shf_block* block : kept) shf_block_unref(block);
    }
}

// Trap 2: whatever the budget, the number of lanes and the shuffle, the run ends: with every
// sample, or with a LIMIT that names the option. It never waits for ever; the watchdog would see
// it.
TEST_F(EngineMemory, no_budget_ends_in_waiting_for_ever) {
    std::vector<uint64_t> samples(64);
    uint64_t total = 0;
    for (uint64_t s = 0; s < samples.size(); ++s) total += samples[s] = 1 + s * 37 % 60;
    for (const size_t size : {1U, 3000U, 60000U, 500000U}) {
        if (size == 500000)
            for (uint64_t& n : samples) n = 2;
        if (size == 500000) total = 128;
        write_shards(directory, samples, size);
        for (const char* lanes : {"1", "16", "64"})
            for (const char* shuffle : {"0", "2", "10000"})
                for (const char* threads : {"1", "8"}) {
                    Client client(directory / "{000..063}.tar", {{"lanes", lanes},
                                                                 {"shuffle", shuffle},
                                                                 {"threads", threads},
                                                                 {"memory", "1MiB"}});
                    const auto keys = client.keys();
                    if (client.code == SHF_END) {
                        EXPECT_EQ(keys.size(), total);
                    } else {
                        EXPECT_EQ(client.code, SHF_E_LIMIT) << client.message();
                        EXPECT_NE(client.message().find("raise memory"), std::string::npos)
                            << client.message();
                        EXPECT_STRNE(shuffle, "0") << client.message();
                    }
                }
    }
}

// The same with tiny data that fits any budget: then it must work.
TEST_F(EngineMemory, many_lanes_and_a_large_shuffle_that_fit) {
    write_shards(directory, std::vector<uint64_t>(64, 30));
    for (const char* threads : {"1", "4"}) {
        Client client(
            directory / "{000..063}.tar",
            {{"lanes", "64"}, {"shuffle", "10000"}, {"memory", "2MiB"}, {"threads", threads}});
        auto keys = client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        std::sort(keys.begin(), keys.end());
        EXPECT_EQ(std::unique(keys.begin(), keys.end()) - keys.begin(), 64 * 30);
    }
}

// With an allocator of the user, too: memory comes from the consumer's thread alone.
TEST_F(EngineMemory, no_budget_ends_in_waiting_for_the_allocator) {
    write_shards(directory, std::vector<uint64_t>(32, 20), 5000);
    for (const char* lanes : {"1", "32"})
        for (const char* shuffle : {"0", "10"})
            for (const bool blocks : {false, true}) {
                Ledger ledger;
                {
                    Client client({directory / "{000..031}.tar"},
                                  {{"lanes", lanes}, {"shuffle", shuffle}, {"memory", "1MiB"}},
                                  counting(ledger));
                    const auto keys = blocks ? client.block_keys() : client.keys();
                    if (client.code == SHF_END)
                        EXPECT_EQ(keys.size(), 640U);
                    else
                        EXPECT_EQ(client.code, SHF_E_LIMIT) << client.message();
                }
                EXPECT_EQ(ledger.live, 0U);
            }
}

TEST_F(EngineMemory, a_member_larger_than_the_budget) {
    std::string shard = sample_members(0, 0) + sample_members(0, 1, MiB + 1) + sample_members(0, 2);
    directory.write("a.tar", shard + end_marker());
    Client raising(directory / "a.tar", {{"memory", "1MiB"}});
    EXPECT_EQ(raising.keys(), std::vector{sample_key(0, 0)});
    EXPECT_EQ(raising.code, SHF_E_LIMIT);
    EXPECT_NE(raising.message().find("memory=1048576"), std::string::npos) << raising.message();
    EXPECT_NE(raising.message().find("raise memory"), std::string::npos) << raising.message();
    EXPECT_NE(raising.message().find(sample_key(0, 1)), std::string::npos) << raising.message();
    Client skipping(directory / "a.tar", {{"memory", "1MiB"}, {"on_error", "skip_sample"}});
    EXPECT_EQ(skipping.keys(), (std::vector{sample_key(0, 0), sample_key(0, 2)}));
    EXPECT_EQ(skipping.code, SHF_END);
    Client enough(directory / "a.tar", {{"memory", "1048577"}});
    EXPECT_EQ(enough.keys().size(), 3U);
    EXPECT_EQ(enough.code, SHF_END) << enough.message();
}

// Trap 4, as far as it can be seen: a long run needs no more memory than readers may have ahead.
TEST_F(EngineMemory, memory_is_recycled) {
    write_shards(directory, {200, 200}, 20000);
    Ledger ledger;
    Client client({directory / "{000..001}.tar"}, {{"epochs", "20"}, {"threads", "2"}},
                  counting(ledger));
    while (client.next()) {
    }
    EXPECT_EQ(client.code, SHF_END);
    EXPECT_EQ(client.stat(SHF_STAT_BYTES), 20U * 400 * 20000);
    EXPECT_LE(ledger.peak, 16 * MiB);
}

}  // namespace
