// States of lanes whose shuffle buffer is not filled again before it is empty, because the epoch
// ends or a shard cannot be read on; and of streams that failed with samples in hand.
#include "resume_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineDrained : public testing::Test {
  protected:
    [[nodiscard]] static std::vector<std::string> tail(const std::vector<std::string>& all,
                                                       size_t from) {
        return {all.begin() + static_cast<long>(from), all.end()};
    }
    // One run from `state` on (empty: from the start): `taken` samples, and the state after them.
    static State run(const std::vector<std::string>& urls, const Settings& settings,
                     const State& state, size_t taken, std::vector<std::string>& keys) {
        Client client(urls, settings);
        if (!state.empty()) {
            EXPECT_EQ(restore(client, state), SHF_OK) << client.message();
        }
        const auto some = client.keys(taken);
        keys.insert(keys.end(), some.begin(), some.end());
        code = client.code;
        return save(client);
    }

    TempDirectory directory;
    const Watchdog watchdog{300};
    static inline int32_t code = SHF_OK;  // of the last run
};

// The last samples are in the buffer, the end of the shard has not come yet: the command takes its
// time to end.
TEST_F(EngineDrained, a_buffer_that_was_refilled_stays_closed) {
    directory.write("a.tar", shard_bytes(0, 40));
    const std::vector<std::string> urls{"pipe:trap '' TERM; cat " + (directory / "a.tar") +
                                        "; sleep 1"};
    const Settings settings{{"shuffle", "28"}, {"seed", "308"}};
    const std::vector<std::string> all = Client(urls, settings).keys();
    ASSERT_EQ(all.size(), 40U);
    std::vector<std::string> keys;
    const State drained = run(urls, settings, {}, 36, keys);
    const State again = run(urls, settings + Settings{{"timeout", "0.3s"}}, drained, 1, keys);
    ASSERT_TRUE(code == SHF_OK || code == SHF_E_TIMEOUT);
    const State last = run(urls, settings, again, 1, keys);
    run(urls, settings, last, SIZE_MAX, keys);
    EXPECT_EQ(code, SHF_END);
    EXPECT_EQ(keys, all);
}

// What comes first is drawn as in the run that had the fault; then everything else comes, once.
class EngineDrainedFault : public EngineDrained {
  protected:
    // From the state of a run that failed, runs of `step` samples.
    void check(const std::vector<std::string>& urls, const Settings& settings, State state,
               std::vector<std::string> keys, size_t expected) {
        const size_t before = keys.size();
        std::vector<std::string> unbroken = keys;
        run(urls, settings, state, SIZE_MAX, unbroken);
        ASSERT_EQ(code, SHF_END);
        EXPECT_EQ(unbroken.size(), expected);
        EXPECT_EQ(std::set<std::string>(unbroken.begin(), unbroken.end()).size(), expected);
        for (const size_t step : {1U, 3U, 10U}) {
            SCOPED_TRACE("from " + std::to_string(before) + " on in steps of " +
                         std::to_string(step));
            State position = state;
            std::vector<std::string> broken = keys;
            do {
                position = run(urls, settings, position, step, broken);
            } while (code == SHF_OK);
            ASSERT_EQ(code, SHF_END);
            ASSERT_EQ(broken, unbroken);
        }
    }
};

TEST_F(EngineDrainedFault, that_passes_loses_and_repeats_nothing) {
    directory.write("a.tar", shard_bytes(0, 60));
    const std::string tar = directory / "a.tar", flag = directory / "fails";
    const std::vector<std::string> urls{"pipe:if [ -e " + flag + " ]; then head -c 30720 " + tar +
                                        "; exit 1; else cat " + tar + "; fi"};
    const Settings settings{{"shuffle", "12"}, {"seed", "5"}};
    for (const size_t taken : {size_t{0}, size_t{15}, size_t{19}, size_t{22}, size_t{25},
                               size_t{28}, SIZE_MAX}) {  // up to the fault itself
        directory.write("fails", "");
        std::vector<std::string> keys;
        const State state = run(urls, settings, {}, taken, keys);
        ASSERT_EQ(code, taken == SIZE_MAX ? SHF_E_CHILD : SHF_OK);
        std::filesystem::remove(flag);
        check(urls, settings, state, keys, 60);
    }
}

TEST_F(EngineDrainedFault, that_is_skipped_after_it_was_raised) {
    std::string cut = shard_bytes(0, 40);
    cut.resize(20 * 1024 + 700);
    directory.write("cut.tar", cut);
    directory.write("whole.tar", shard_bytes(1, 60));
    const std::vector<std::string> urls{directory / "cut.tar", directory / "whole.tar"};
    const Settings raises{{"shuffle", "12"}, {"seed", "5"}};
    for (const size_t taken : {size_t{12}, size_t{17}, SIZE_MAX}) {
        std::vector<std::string> keys;
        const State state = run(urls, raises, {}, taken, keys);
        check(urls, raises + Settings{{"on_error", "skip_shard"}}, state, keys, 80);
    }
}

// No sample of a block may be called unread after another call.
TEST_F(EngineDrained, next_ends_what_can_be_unread) {
    directory.write("a.tar", shard_bytes(0, 40));
    for (const size_t blocks : {1U, 2U}) {
        Client client(directory / "a.tar", {});
        for (size_t i = 0; i < blocks; ++i) ASSERT_FALSE(block_of(client, 5).empty());
        ASSERT_EQ(client.keys(1).size(), 1U);
        shf_state* state = nullptr;
        EXPECT_EQ(shf_stream_save(client.stream, 1, &state, &client.error), SHF_E_USAGE);
        EXPECT_EQ(state, nullptr);
    }
}

TEST_F(EngineDrained, a_pass_without_a_shard_fails_again) {
    const std::vector<std::string> urls{"/nowhere/1.tar", "/nowhere/2.tar", "/nowhere/3.tar"};
    const Settings settings{{"on_error", "skip_shard"}, {"lanes", "3"}, {"epochs", "2"}};
    std::vector<std::string> keys;
    const State state = run(urls, settings, {}, SIZE_MAX, keys);
    ASSERT_EQ(code, SHF_E_IO);
    run(urls, settings, state, SIZE_MAX, keys);
    EXPECT_EQ(code, SHF_E_IO);
    EXPECT_TRUE(keys.empty());
}

// Memory of the user's that there is none of: no sample that was on its way into a block is lost.
struct Allocator {
    int calls = 0, fails_at = 0;
    static void* allocate(void* context, size_t size, size_t alignment) {
        auto& self = *static_cast<Allocator*>(context);
        if (++self.calls == self.fails_at) return nullptr;
        return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    }
    static void release(void* /*context*/, void* memory, size_t /*size*/) { std::free(memory); }
};

TEST_F(EngineDrained, no_sample_is_lost_without_memory_for_a_block) {
    directory.write("a.tar", shard_bytes(0, 40));
    directory.write("b.tar", shard_bytes(1, 60));
    const std::vector<std::string> urls{directory / "a.tar", directory / "b.tar"};
    const Settings settings{{"lanes", "2"}, {"threads", "2"}};
    const std::vector<std::string> all = Client(urls, settings).keys();
    ASSERT_EQ(all.size(), 100U);
    int failed = 0;
    for (int fails_at = 1; fails_at < 14; ++fails_at)
        for (const size_t most : {0U, 7U}) {
            SCOPED_TRACE("allocation " + std::to_string(fails_at));
            Allocator allocator{.fails_at = fails_at};
            std::vector<std::string> keys;
            State state;
            {
                Client client(urls, settings, [&](shf_options* options) {
                    shf_options_set_allocator(options, Allocator::allocate, Allocator::release,
                                              &allocator);
                });
                for (;;) {
                    const auto block = block_of(client, most);
                    if (client.code != SHF_OK) break;
                    keys.insert(keys.end(), block.begin(), block.end());
                }
                failed += client.code == SHF_E_NOMEM;
                state = save(client);
            }
            run(urls, settings, state, SIZE_MAX, keys);
            EXPECT_EQ(code, SHF_END);
            ASSERT_EQ(keys, all);
        }
    EXPECT_GT(failed, 0);
}

}  // namespace
