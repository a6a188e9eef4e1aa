// A cancel from another thread: what was given before it is the start of the order, without a gap.
#include "resume_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace shf::test;

class EngineCancel : public testing::TestWithParam<Settings> {};

// A reader that drops what it has read must not come to the end of its shard: the consumer would
// take the next shard for what follows.
TEST_P(EngineCancel, no_sample_is_lost_before_it) {
    const Watchdog watchdog{300};
    const TempDirectory directory;
    write_shards(directory, std::vector<uint64_t>(200, 2));
    const std::string url = directory / "{000..199}.tar";
    const std::vector<std::string> all = Client(url, GetParam()).keys();
    ASSERT_EQ(all.size(), 400U);
    size_t cancelled = 0;
    for (int round = 0; round < (SANITIZED ? 40 : 400); ++round) {
        Client client(url, GetParam());
        std::atomic<bool> begun = false;
        std::thread canceller([&] {
            while (!begun) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::microseconds(round * 3));
            shf_stream_cancel(client.stream);
        });
        std::vector<std::string> keys = client.keys(1);
        begun = true;
        const std::vector<std::string> more = client.block_keys(100);
        keys.insert(keys.end(), more.begin(), more.end());
        canceller.join();
        ASSERT_LE(keys.size(), all.size());
        ASSERT_EQ(keys, std::vector(all.begin(), all.begin() + static_cast<long>(keys.size())));
        ASSERT_EQ(client.code, keys == all && client.code == SHF_END ? SHF_END : SHF_E_CANCELLED)
            << client.message();
        if (client.code != SHF_E_CANCELLED) continue;
        ++cancelled;
        // What is saved continues there.
        Client rest(url, GetParam());
        ASSERT_EQ(restore(rest, save(client)), SHF_OK) << rest.message();
        ASSERT_EQ(rest.keys(),
                  std::vector(all.begin() + static_cast<long>(keys.size()), all.end()));
    }
    EXPECT_GT(cancelled, 0U);
}

INSTANTIATE_TEST_SUITE_P(Orders, EngineCancel,
                         testing::Values(Settings{{"threads", "2"}},
                                         Settings{{"lanes", "3"}, {"shuffle", "20"}}));

}  // namespace
