// Memory that is easily forgotten: what a sleeping reader keeps, what fields without payload take,
// what stands before full shuffle buffers. Measured as resident memory of the process.
#include "temp_shards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace {

using namespace shf::test;

constexpr uint64_t MiB = 1 << 20;

uint64_t resident() {
    uint64_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What a stream added to the resident memory at most, looked at after every sample.
uint64_t growth(Client& client) {
    const uint64_t before = resident();
    uint64_t most = before;
    while (const SampleHandle sample = client.next()) most = std::max(most, resident());
    return std::max(most, resident()) - before;
}

// Shadow memory of a sanitizer; the runs themselves are still of use.
constexpr uint64_t slack = (SANITIZED ? 1024 : 64) * MiB;

class EngineBounds : public testing::Test {
  protected:
    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(EngineBounds, sleeping_readers_keep_no_large_slab) {
    write_shards(directory, std::vector<uint64_t>(12, 3), 8 * MiB);
    Client client(directory / "{000..011}.tar", {{"lanes", "12"}, {"memory", "16MiB"}});
    EXPECT_LE(growth(client), 16 * MiB + slack);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(client.stat(SHF_STAT_SAMPLES), 36U);
}

TEST_F(EngineBounds, small_fields_with_large_ignored_members_between) {
    std::string shard;
    const std::string ignored(530 * 1024, 'x');
    for (int i = 0; i < 300; ++i)
        shard +=
            member("a." + std::to_string(i), "1") + member("__x__/" + std::to_string(i), ignored);
    directory.write("a.tar", shard + end_marker());
    Client client(directory / "a.tar", {{"memory", "16MiB"}});
    EXPECT_LE(growth(client), 16 * MiB + slack);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(client.stat(SHF_STAT_BYTES), 300U);
}

TEST_F(EngineBounds, fields_without_payload_count) {
    std::string shard;
    for (int i = 0; i < 20000; ++i) shard += member("a." + std::to_string(i), "");
    directory.write("a.tar", shard + end_marker());
    Client small(directory / "a.tar", {{"memory", "1MiB"}});
    EXPECT_EQ(small.keys().size(), 0U);
    EXPECT_EQ(small.code, SHF_E_LIMIT);
    EXPECT_NE(small.message().find("memory"), std::string::npos) << small.message();
    Client large(directory / "a.tar", {{"memory", "64MiB"}});
    EXPECT_TRUE(large.next());
    EXPECT_EQ(large.code, SHF_OK) << large.message();
}

TEST_F(EngineBounds, a_large_sample_does_not_come_on_top_of_full_shuffle_buffers) {
    write_shards(directory, {3}, 48 * MiB);
    Client client(directory / "000.tar", {{"shuffle", "2"}, {"memory", "64MiB"}});
    EXPECT_LE(growth(client), 64 * MiB + slack);
    EXPECT_EQ(client.code, SHF_E_LIMIT);
    EXPECT_NE(client.message().find("shuffle"), std::string::npos) << client.message();
    EXPECT_LE(client.stat(SHF_STAT_MEMORY_PEAK), 64 * MiB + 64 * MiB);
}

// Blocks of large samples close by their size: none may be lost between two of them.
TEST_F(EngineBounds, no_sample_is_lost_between_large_blocks) {
    for (const size_t size : {60'000UL, 110'000UL, 300'000UL, 700'000UL}) {
        write_shards(directory, {20, 20}, size);
        for (const Settings& settings : {Settings{{"lanes", "2"}}, Settings{{"shuffle", "20"}}}) {
            Client client(directory / "{000..001}.tar", settings);
            auto keys = client.block_keys();
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(keys.size(), 40U) << size;
            std::sort(keys.begin(), keys.end());
            EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end()) << size;
        }
    }
}

TEST_F(EngineBounds, standard_input_is_read_once) {
    write_shards(directory, {2});
    for (const Settings& settings :
         {Settings{{"epochs", "2"}}, Settings{{"epochs", "0"}}, Settings{{"epoch_samples", "9"}},
          Settings{{"resample", "true"}}}) {
        Client client("-", settings);
        EXPECT_EQ(client.code, SHF_E_USAGE) << client.message();
    }
    Client twice(std::vector<std::string>{"-", directory / "000.tar", "-"}, {});
    EXPECT_EQ(twice.code, SHF_E_USAGE) << twice.message();
    Client once("-", {});
    EXPECT_EQ(once.code, SHF_OK) << once.message();
}

TEST_F(EngineBounds, every_consumer_has_a_part_of_epoch_samples) {
    write_shards(directory, {2, 2});
    const Settings ranks = {{"world_size", "2"}, {"rank", "1"}};
    Client none(directory / "{000..001}.tar", ranks + Settings{{"epoch_samples", "1"}});
    EXPECT_EQ(none.code, SHF_E_USAGE) << none.message();
    Client one(directory / "{000..001}.tar", ranks + Settings{{"epoch_samples", "2"}});
    EXPECT_EQ(one.keys().size(), 1U);
    EXPECT_EQ(one.code, SHF_END) << one.message();
}

}  // namespace
