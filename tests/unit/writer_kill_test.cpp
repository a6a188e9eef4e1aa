// kill -9 of a writer at random points: no shard is torn, and nothing that was acknowledged is
// lost.
#include "writer_client.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

std::string payload(uint64_t number) {
    return std::string(200 + number * 7919 % 5000, static_cast<char>('a' + number % 26));
}

// Writes samples for ever. After every flush to the disk it says how many there were so far.
[[noreturn]] void write_for_ever(const std::string& pattern, int acknowledged,
                                 const Settings& settings) {
    WriterClient client(pattern, settings);
    for (uint64_t i = 0; client.code == SHF_OK; ++i) {
        client.write("k" + std::to_string(i), {{"txt", payload(i)}});
        if (i % 25 != 24 || client.code != SHF_OK) continue;
        client.code = shf_writer_flush(client.writer, 1, &client.error);
        const uint64_t count = i + 1;
        if (client.code == SHF_OK &&
            ::write(acknowledged, &count, sizeof count) != static_cast<ssize_t>(sizeof count))
            break;
    }
    ::_exit(1);
}

class WriterKill : public testing::Test {
  protected:
    void kill_at_random_points(int kills, unsigned seed) {
        std::mt19937 random(seed);
        uint64_t most = 0;
        for (int i = 0; i < kills; ++i) {
            const TempDirectory folder;
            int fds[2];
            ASSERT_EQ(::pipe(fds), 0);
            const pid_t child = ::fork();
            ASSERT_GE(child, 0);
            if (child == 0)
                write_for_ever(
                    folder / "a-%03d.tar", fds[1],
                    {{"max_samples", "60"}, {"write_index", i % 2 == 0 ? "true" : "false"}});
            ::close(fds[1]);
            ::usleep(static_cast<useconds_t>(random() % 30000));
            ::kill(child, SIGKILL);
            int status = 0;
            ASSERT_EQ(::waitpid(child, &status, 0), child);
            ASSERT_TRUE(WIFSIGNALED(status)) << "seed " << seed;
            uint64_t acknowledged = 0, last = 0;
            while (::read(fds[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last))
                acknowledged = last;
            ::close(fds[0]);
            check(folder, acknowledged, seed);
            most = std::max(most, acknowledged);
        }
        EXPECT_GT(most, 0U) << "no writer came so far as to acknowledge a sample";
    }

    // Published shards are whole, and with the rest, up to where it was cut, have all samples.
    static void check(const TempDirectory& folder, uint64_t acknowledged, unsigned seed) {
        std::vector<std::string> shards, rest;
        for (const std::string& name : names_in(folder / "")) {
            if (name.ends_with(".tar"))
                shards.push_back(folder / name);
            else if (name.ends_with(".partial"))
                rest.push_back(folder / name);
        }
        uint64_t found = 0;
        for (const std::string& shard : shards) {
            const auto samples = samples_of({shard});  // or an error, which fails there
            ASSERT_EQ(samples.size(), 60U) << shard << ", seed " << seed;
            for (const std::string& sample : samples) {
                ASSERT_EQ(sample, "k" + std::to_string(found) + " txt=" + payload(found));
                ++found;
            }
        }
        // Of at most two shards: one was being published, the other one written. Their samples
        // follow; the last one may be cut.
        ASSERT_LE(rest.size(), 3U) << "seed " << seed;
        std::vector<std::pair<uint64_t, uint64_t>> ranges;
        for (const std::string& part : rest) {
            Client client(part, {{"end_marker", "optional"}, {"on_error", "skip_shard"}});
            uint64_t first = 0, count = 0;
            while (const SampleHandle sample = client.next()) {
                const uint64_t number = std::stoull(key_of(sample.get()).substr(1));
                if (count == 0) first = number;
                ASSERT_EQ(number, first + count) << "seed " << seed;
                shf_bytes text;
                ASSERT_EQ(shf_sample_find(sample.get(), "txt", 3, &text), SHF_OK);
                ASSERT_EQ(text_of(text), payload(number)) << "seed " << seed;
                ++count;
            }
            if (count > 0) ranges.emplace_back(first, count);
        }
        std::sort(ranges.begin(), ranges.end());
        for (const auto& [first, count] : ranges)
            if (first <= found) found = std::max(found, first + count);
        ASSERT_GE(found, acknowledged) << "seed " << seed;
    }
};

TEST_F(WriterKill, kill_9_tears_no_shard_and_loses_nothing_acknowledged) {
    kill_at_random_points(15, std::random_device()());
}

TEST_F(WriterKill, kill_9_campaign) {
    int kills = 200;
    if (const char* more = std::getenv("SHARDFEED_KILLS")) kills = std::atoi(more);
    kill_at_random_points(kills, std::random_device()());
}

}  // namespace
