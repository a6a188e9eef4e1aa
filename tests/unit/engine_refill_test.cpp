// After a restore, with indexes beside the shards: samples of the shuffle buffer are read when they
// are drawn. That it is as if there had been no stop is in engine_resume_cases_test.cpp as well.
#include "resume_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

class EngineRefill : public testing::Test {
  protected:
    static constexpr uint64_t shards = 12, samples = 60;

    EngineRefill() {
        write_shards(directory, std::vector<uint64_t>(shards, samples));
        shf_error error = {};
        for (uint64_t s = 0; s < shards; ++s)
            EXPECT_EQ(shf_index_build(path(s).c_str(), nullptr, &error), SHF_OK) << error.message;
    }

    [[nodiscard]] std::string path(uint64_t shard, std::string_view suffix = ".tar") const {
        char name[32];
        std::snprintf(name, sizeof name, "%03u", static_cast<unsigned>(shard));
        return directory / (name + std::string(suffix));
    }
    [[nodiscard]] std::string url() const { return directory / "{000..011}.tar"; }
    [[nodiscard]] State stopped(const Settings& settings, size_t taken) const {
        Client client(url(), settings);
        EXPECT_EQ(client.keys(taken).size(), taken);
        return save(client);
    }
    [[nodiscard]] std::vector<std::string> whole(const Settings& settings) const {
        Client client(url(), settings);
        auto keys = client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return keys;
    }
    // What comes after `taken` samples, with a stop there.
    void expect_rest(const Settings& settings, const State& state, size_t taken) const {
        const auto all = whole(settings);
        Client client(url(), settings);
        ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
        EXPECT_EQ(client.keys(), std::vector(all.begin() + static_cast<long>(taken), all.end()));
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }

    TempDirectory directory;
    const Watchdog watchdog{300};
    const Settings shuffled{
        {"lanes", "3"}, {"shuffle", "100"}, {"shuffle_shards", "true"}, {"seed", "5"}};
};

TEST_F(EngineRefill, goes_on_from_everywhere) {
    for (const size_t taken : {1U, 50U, 299U, 300U, 301U, 550U, 700U, 719U, 720U})
        expect_rest(shuffled, stopped(shuffled, taken), taken);
}

TEST_F(EngineRefill, stops_again_at_every_sample) {
    const auto all = whole(shuffled);
    std::vector<std::string> keys;
    State state = stopped(shuffled, 0);
    for (size_t i = 0; i < 120; ++i) {
        Client client(url(), shuffled);
        ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
        const auto some = client.keys(1 + i % 7);
        keys.insert(keys.end(), some.begin(), some.end());
        state = save(client);
        EXPECT_LT(state.size(), 2048U);
    }
    ASSERT_LE(keys.size(), all.size());
    EXPECT_TRUE(std::equal(keys.begin(), keys.end(), all.begin()));
}

// Files that are read without index: what comes before the first sample counts no more.
TEST_F(EngineRefill, a_member_before_the_first_sample_is_no_sample) {
    directory.write("004.tar", member("README", "hello") + shard_bytes(4, samples));
    shf_error error = {};
    ASSERT_EQ(shf_index_build(path(4).c_str(), nullptr, &error), SHF_OK) << error.message;
    for (const size_t taken : {100U, 400U}) expect_rest(shuffled, stopped(shuffled, taken), taken);
}

TEST_F(EngineRefill, fields_that_some_samples_lack) {
    std::string bytes;
    for (uint64_t i = 0; i < samples; ++i)
        bytes += member(sample_key(7, i) + (i % 3 == 0 ? ".other" : ".txt"), sample_key(7, i));
    directory.write("007.tar", bytes + end_marker());
    shf_error error = {};
    ASSERT_EQ(shf_index_build(path(7).c_str(), nullptr, &error), SHF_OK) << error.message;
    const Settings settings = shuffled + Settings{{"fields", "txt"}};
    for (const size_t taken : {100U, 350U, 600U})
        expect_rest(settings, stopped(settings, taken), taken);
}

TEST_F(EngineRefill, a_damaged_index_is_not_believed) {
    const State state = stopped(shuffled, 333);
    for (uint64_t s = 0; s < shards; ++s) {
        const std::string index = path(s, ".tar.sfidx");
        const auto size = static_cast<std::streamoff>(fs::file_size(index));
        std::fstream file(index, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(size - 40);
        file.write("damaged!", 8);
    }
    expect_rest(shuffled, state, 333);
}

// The index does not make another version of a shard a good one.
TEST_F(EngineRefill, a_changed_shard_is_an_error) {
    const State state = stopped(shuffled, 333);
    for (uint64_t s = 0; s < shards; ++s) {
        directory.write(fs::path(path(s)).filename().string(), shard_bytes(s, samples + 1));
        shf_error error = {};
        ASSERT_EQ(shf_index_build(path(s).c_str(), nullptr, &error), SHF_OK) << error.message;
    }
    for (const char* on_error : {"raise", "skip_sample", "skip_shard"}) {
        Client client(url(), shuffled + Settings{{"on_error", on_error}});
        ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
        EXPECT_TRUE(client.keys().empty());
        EXPECT_EQ(client.code, SHF_E_CHANGED) << client.message();
        EXPECT_NE(client.message().find(".tar"), std::string::npos) << client.message();
    }
}

// What cannot be read when it is drawn is not lost: a state that is saved then leads to it.
TEST_F(EngineRefill, a_shard_that_is_away_for_a_while) {
    const auto all = whole(shuffled);
    const State state = stopped(shuffled, 333);
    Client client(url(), shuffled);
    ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
    for (uint64_t s = 0; s < shards; ++s) fs::rename(path(s), path(s, ".away"));
    const auto some = client.keys();
    EXPECT_EQ(client.code, SHF_E_IO) << client.message();
    const State later = save(client);
    for (uint64_t s = 0; s < shards; ++s) fs::rename(path(s, ".away"), path(s));
    expect_rest(shuffled, later, 333 + some.size());
}

TEST_F(EngineRefill, works_in_little_memory) {
    for (uint64_t s = 0; s < shards; ++s) {
        std::string bytes;
        for (uint64_t i = 0; i < samples; ++i) bytes += sample_members(s, i, 30000);
        directory.write(fs::path(path(s)).filename().string(), bytes + end_marker());
        shf_error error = {};
        ASSERT_EQ(shf_index_build(path(s).c_str(), nullptr, &error), SHF_OK) << error.message;
    }
    // The buffers hold 300 samples of 30 kB.
    const Settings settings = shuffled + Settings{{"memory", "12MiB"}};
    const State state = stopped(settings, 200);
    expect_rest(settings, state, 200);
    Client client(url(), settings);
    ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
    EXPECT_EQ(client.keys(300).size(), 300U);
    EXPECT_LT(shf_stream_stat(client.stream, SHF_STAT_MEMORY_PEAK), uint64_t{16} << 20);
}

TEST_F(EngineRefill, is_cancelled_like_any_stream) {
    const State state = stopped(shuffled, 333);
    for (int i = 0; i < 20; ++i) {
        Client client(url(), shuffled);
        ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
        EXPECT_EQ(client.keys(static_cast<size_t>(i)).size(), static_cast<size_t>(i));
        shf_stream_cancel(client.stream);
        EXPECT_TRUE(client.keys(1).empty());
        EXPECT_EQ(client.code, SHF_E_CANCELLED) << client.message();
    }
}

TEST_F(EngineRefill, limit_and_epochs_leave_the_rest) {
    for (const Settings& more :
         {Settings{{"limit", "200"}, {"epochs", "3"}}, Settings{{"epochs", "2"}},
          Settings{{"epoch_samples", "900"}}, Settings{{"even", "drop"}, {"world_size", "1"}}}) {
        const Settings settings = shuffled + more;
        for (const size_t taken : {30U, 150U, 500U})
            expect_rest(settings, stopped(settings, taken), taken);
    }
}

}  // namespace
