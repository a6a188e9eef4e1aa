// kill -9 of a writer at random points: no shard is torn, and nothing that was acknowledged is
// lost.
#include "../sanitizers.h"
#include "written_shards.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

// Writes samples for ever. After every flush to the disk it says how many there were so far.
[[noreturn]] void write_for_ever(const std::string& pattern, int acknowledged,
                                 const Settings& settings) {
    WriterClient client(pattern, settings);
    for (uint64_t i = 0; client.code == SHF_OK; ++i) {
        write_numbered(client, i);
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
                write_for_ever(folder / "a-%03d.tar", fds[1],
                               {{"max_samples", std::to_string(numbered_samples)},
                                {"write_index", i % 2 == 0 ? "true" : "false"}});
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
            const testing::ScopedTrace trace(__FILE__, __LINE__, seed);
            check_numbered(folder / "", acknowledged, false);
            most = std::max(most, acknowledged);
        }
        EXPECT_GT(most, 0U) << "no writer came so far as to acknowledge a sample";
    }
};

TEST_F(WriterKill, kill_9_tears_no_shard_and_loses_nothing_acknowledged) {
    kill_at_random_points(200 / CASE_STRIDE, std::random_device()());
}

TEST_F(WriterKill, kill_9_campaign) {
    int kills = 200;
    if (const char* more = std::getenv("SHARDFEED_KILLS")) kills = std::atoi(more);
    kill_at_random_points(kills, std::random_device()());
}

}  // namespace
