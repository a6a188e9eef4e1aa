// Several processes on one cache: what they fetch, and what is left when they are killed.
#include "cache_client.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <random>

namespace {

using namespace shf::test;
using shf::cache_block_size;

constexpr int shard_count = 4;
constexpr uint64_t size = 3 * cache_block_size + 12345;

std::string name_of_shard(int number) {
    return "test://host/" + std::to_string(number) + ".tar";
}

class CacheProcesses : public CacheTest {
  protected:
    CacheProcesses() {
        for (int i = 0; i < shard_count; ++i)
            serve(name_of_shard(i), size, static_cast<uint64_t>(i) + 1);
    }
    static const std::string& bytes_of(int shard) {
        return Server::get().shards.at(name_of_shard(shard)).bytes;
    }
    // Reads all shards, in another order in every process. 0 when all bytes were right.
    int read_all(int process) {
        try {
            for (int i = 0; i < shard_count; ++i) {
                const auto source = open(name_of_shard(i));
                const bool right = (process + i) % 3 == 0 ? part_of(*source, 0, size) == bytes_of(i)
                                                          : rest_of(*source) == bytes_of(i);
                if (!right) return 3;
            }
            return use.cache_faults == 0 ? 0 : 4;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            return 5;
        }
    }
    std::vector<pid_t> start(int count, const std::function<int(int)>& action) {
        std::vector<pid_t> children;
        for (int i = 0; i < count; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when a test fails
                ::_exit(action(i));
            }
            children.push_back(child);
        }
        return children;
    }
    static int status_of(pid_t child) {
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    void kill_at_random_points(int kills, unsigned seed);
};

TEST_F(CacheProcesses, eight_on_one_cold_cache_fetch_each_byte_once) {
    const Watchdog watchdog(60);
    Server::get().traffic.delay_us = 300;
    for (const pid_t child : start(8, [this](int i) { return read_all(i); }))
        EXPECT_EQ(status_of(child), 0);
    EXPECT_LE(fetched(), shard_count * size * 102 / 100);
    EXPECT_TRUE(parts().empty());
}

TEST_F(CacheProcesses, a_lock_goes_with_its_process_though_a_child_of_it_lives) {
    const Watchdog watchdog(60);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t leader = start(1, [&](int) {
        const auto reader = open(name_of_shard(0))->open_sequential(0);
        std::vector<uint8_t> buffer(1000);
        (void)reader->read(buffer);
        const pid_t worker = ::fork();  // as a DataLoader does
        (void)!::write(ready[1], &worker, sizeof worker);
        ::pause();
        return 0;
    })[0];
    pid_t worker = 0;
    // Both have said it.
    for (int i = 0; i < 2; ++i) {
        pid_t said = 0;
        ASSERT_EQ(::read(ready[0], &said, sizeof said), static_cast<ssize_t>(sizeof said));
        if (said > 0) worker = said;
    }
    ::kill(leader, SIGKILL);
    (void)status_of(leader);
    const auto start_time = std::chrono::steady_clock::now();
    EXPECT_EQ(rest_of(*open(name_of_shard(0))), bytes_of(0));
    EXPECT_LT(std::chrono::steady_clock::now() - start_time, std::chrono::seconds(2));
    ::kill(worker, SIGKILL);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_F(CacheProcesses, a_forked_child_that_drops_a_reader_leaves_the_parents_alone) {
    const auto source = open(name_of_shard(0));
    auto reader = source->open_sequential(0);
    std::vector<uint8_t> buffer(100000);
    std::string text;
    const auto read = [&] {
        const size_t count = reader->read(buffer);
        text.append(reinterpret_cast<const char*>(buffer.data()), count);
        return count > 0;
    };
    ASSERT_TRUE(read());
    const pid_t child = start(1, [&](int) {
        reader.reset();
        return part_of(*source, size - 100, 100) == bytes_of(0).substr(size - 100) ? 0 : 1;
    })[0];
    EXPECT_EQ(status_of(child), 0);
    while (read()) {
    }
    EXPECT_EQ(text, bytes_of(0));
    EXPECT_EQ(blocks().size(), 4U);
    EXPECT_TRUE(warnings.empty());
}

// Eight processes read, with eviction; one after another of them is killed. What is left gives
// right bytes, no lock sticks, and nothing but young files in the making is over.
void CacheProcesses::kill_at_random_points(int kills, unsigned seed) {
    std::minstd_rand random(seed);
    options.cache_size = 9 * cache_block_size;
    Server::get().traffic.delay_us = 100;
    const auto reading = [this](int i) {
        for (;;)
            if (const int wrong = read_all(i)) return wrong;
    };
    std::vector<pid_t> children = start(8, reading);
    for (int i = 0; i < kills; ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
        const size_t victim = random() % children.size();
        ::kill(children[victim], SIGKILL);
        ASSERT_EQ(status_of(children[victim]), 1000 + SIGKILL) << "seed " << seed;
        children[victim] = start(1, [&](int) { return reading(static_cast<int>(victim)); })[0];
        if (i % 20 == 19) {
            const auto before = std::chrono::steady_clock::now();
            ASSERT_EQ(read_all(i), 0) << "seed " << seed;
            ASSERT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(60))
                << "a lock sticks";
        }
    }
    for (const pid_t child : children) {
        ::kill(child, SIGKILL);
        ASSERT_EQ(status_of(child), 1000 + SIGKILL) << "seed " << seed;
    }
    Server::get().traffic.delay_us = 0;
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(read_all(0), 0) << "seed " << seed;
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
    for (const auto& part : parts())
        std::filesystem::last_write_time(
            part, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
    shf::CacheFolder(options.cache, options.cache_size, false).recount();
    EXPECT_TRUE(parts().empty());
}

TEST_F(CacheProcesses, kill_9_leaves_nothing_that_is_wrong) {
    const Watchdog watchdog(120);
    kill_at_random_points(20, std::random_device()());
}

TEST_F(CacheProcesses, kill_9_campaign) {
    int kills = 200;
    if (const char* more = std::getenv("SHARDFEED_KILLS")) kills = std::atoi(more);
    kill_at_random_points(kills, std::random_device()());
}

}  // namespace
