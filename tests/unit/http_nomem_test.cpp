// Memory runs out while shards are read over HTTP, with and without a cache. over_nginx.py says
// where they are.
#include "nomem_client.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace {

using namespace shf::test;

std::string place(const char* name) {
    const char* const value = std::getenv(name);
    if (!value) throw std::runtime_error(std::string(name) + ": over_nginx.py says it");
    return value;
}

// The stride is 1 in the campaign.
class HttpNomem : public testing::TestWithParam<int64_t> {
  protected:
    HttpNomem() {
        std::ofstream(place("SHARDFEED_SERVED_FOLDER") + "/0.tar", std::ios::binary)
            << shard_bytes(0, 30, 3000);
        // glibc ends the process where it gets no memory for the destructor of a thread's object.
        // The library sees to it that there is some.
        static const bool once = [] {
            faults::spare_library("libc.so");
            return true;
        }();
        EXPECT_TRUE(once);
    }
    void fail_each(const Settings& settings) {
        const std::string url = place("SHARDFEED_SERVED_URL") + "/0.tar";
        const Scenario reading =
            run(url, settings + Settings{{"threads", "1"}, {"retries", "2"}}, false);
        const Scenario scenario = [&](Outcome& outcome) {
            outcome.pools = true;  // connections wait for their next use
            reading(outcome);
        };
        const Counts counts = fail_each_allocation(scenario, Faults::heap, GetParam(), no_thread);
        EXPECT_GT(counts.nomem, GetParam() == 1 ? 30U : 3U);
        RecordProperty("points", std::to_string(counts.points));
    }

    const TempDirectory folder;
};

TEST_P(HttpNomem, one_connection) {
    fail_each({{"connections", "1"}});
}
TEST_P(HttpNomem, several_connections) {
    fail_each({{"connections", "4"}});
}
TEST_P(HttpNomem, through_a_cache) {
    fail_each({{"connections", "1"}, {"cache", folder / "cache"}});
}

INSTANTIATE_TEST_SUITE_P(sample, HttpNomem, testing::Values(7));
INSTANTIATE_TEST_SUITE_P(every, HttpNomem, testing::Values(1));

}  // namespace
