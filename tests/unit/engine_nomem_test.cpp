// Every allocation of a run fails once, in turn: the run then ends with NOMEM or, where the library
// can do without, as if nothing had been; it neither crashes nor hangs nor leaks (the last is seen
// by the sanitizer build), and never delivers fewer samples as if they were all.
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

namespace {

// Counts down to the allocation that fails; negative: none does.
std::atomic<int64_t> until_failure{-1};
// Allocations of this thread are the test's own.
thread_local bool exempt = false;

bool fails_now() {
    if (until_failure.load(std::memory_order_relaxed) < 0 || exempt) return false;
    return until_failure.fetch_sub(1, std::memory_order_relaxed) == 0;
}

void* allocate(size_t size) {
    void* memory = fails_now() ? nullptr : std::malloc(size > 0 ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(size_t size) {
    return allocate(size);
}
void* operator new[](size_t size) {
    return allocate(size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return fails_now() ? nullptr : std::malloc(size > 0 ? size : 1);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return fails_now() ? nullptr : std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}

namespace {

using namespace shf::test;

struct Outcome {
    int32_t code = SHF_OK;
    size_t samples = 0;
    bool whole = true, repeats = true;
    std::string message;
};

// One run, with the calls that a user makes; allocation number `n` fails.
Outcome run(const char* url, const Settings& settings, bool blocks, int64_t n) {
    shf_error error = {};
    Outcome outcome;
    shf_stream* stream = nullptr;
    shf_options* options = shf_options_new();
    for (const auto& [name, value] : settings)
        shf_options_set(options, name.c_str(), value.c_str(), nullptr);
    until_failure = n;
    outcome.code = shf_stream_open(&stream, &url, 1, options, &error);
    if (outcome.code != SHF_OK && stream) outcome.whole = false;
    const auto step = [&]() -> int32_t {
        shf_sample* sample = nullptr;
        shf_block* block = nullptr;
        const int32_t code = blocks ? shf_stream_next_block(stream, 0, &block, &error)
                                    : shf_stream_next(stream, &sample, &error);
        const size_t count = blocks ? shf_block_count(block) : (sample ? 1 : 0);
        exempt = true;
        for (size_t i = 0; i < count; ++i)
            outcome.whole = outcome.whole && is_whole(blocks ? shf_block_sample(block, i) : sample);
        exempt = false;
        outcome.samples += count;
        shf_sample_unref(sample);
        shf_block_unref(block);
        return code;
    };
    if (outcome.code == SHF_OK) {
        while ((outcome.code = step()) == SHF_OK) {
        }
        until_failure = -1;
        outcome.message = error.message;
        for (int i = 0; i < 2; ++i) outcome.repeats = outcome.repeats && step() == outcome.code;
    }
    until_failure = -1;
    shf_stream_close(stream);
    shf_options_free(options);
    return outcome;
}

void fail_each_allocation(const std::string& url, const Settings& settings, bool blocks,
                          size_t samples, int64_t step) {
    ASSERT_EQ(run(url.c_str(), settings, blocks, -1).code, SHF_END);
    int64_t n = 0, failures = 0, untouched = 0;
    // Until some runs in a row were never touched; threads make the count of allocations vary a
    // bit.
    for (; untouched < 5 && n < 20000; n += step) {
        const Outcome outcome = run(url.c_str(), settings, blocks, n);
        EXPECT_TRUE(outcome.whole) << n;
        EXPECT_TRUE(outcome.repeats) << n;
        if (outcome.code == SHF_END) {
            EXPECT_EQ(outcome.samples, samples) << "allocation " << n;
            ++untouched;
        } else {
            EXPECT_EQ(outcome.code, SHF_E_NOMEM) << "allocation " << n << ": " << outcome.message;
            EXPECT_LE(outcome.samples, samples);
            ++failures;
            untouched = 0;
        }
        if (testing::Test::HasFailure()) break;
    }
    EXPECT_GT(failures, 30);
    EXPECT_LT(n, 20000);
}

class EngineNomem : public testing::Test {
  protected:
    EngineNomem() { write_shards(directory, {30, 30, 30, 30}, 3000); }
    [[nodiscard]] std::string url() const { return directory / "{000..003}.tar"; }

    const Watchdog watchdog{600};
    const TempDirectory directory;
};

TEST_F(EngineNomem, samples) {
    fail_each_allocation(url(), {{"threads", "1"}}, false, 120, 1);
}
TEST_F(EngineNomem, blocks) {
    fail_each_allocation(url(), {{"threads", "2"}}, true, 120, 1);
}
TEST_F(EngineNomem, lanes_and_shuffle) {
    fail_each_allocation(
        url(), {{"threads", "2"}, {"lanes", "2"}, {"shuffle", "10"}, {"shuffle_shards", "true"}},
        true, 120, 3);
}
TEST_F(EngineNomem, pipe) {
    fail_each_allocation("pipe:cat " + (directory / "000.tar"), {{"threads", "1"}}, false, 30, 3);
}
// Damage does not become NOMEM, and NOMEM is not skipped as damage.
TEST_F(EngineNomem, skipped_shards) {
    directory.write("001.tar", shard_bytes(1, 30, 3000).substr(0, 50000));
    const Settings settings = {{"threads", "1"}, {"on_error", "skip_sample"}};
    const size_t samples = run(url().c_str(), settings, false, -1).samples;
    fail_each_allocation(url(), settings, false, samples, 1);
}

TEST_F(EngineNomem, options_and_urls) {
    const auto each = [](void*, const char*, size_t) -> int32_t { return 0; };
    const std::string given = url();
    const char* text = given.c_str();
    int refused = 0;
    for (int64_t n = 0; n < 40; ++n) {
        shf_error error = {};
        until_failure = n;
        shf_options* options = shf_options_new();
        const int32_t set = options ? shf_options_set(options, "shufle", "1", &error) : SHF_E_NOMEM;
        const int32_t expanded = shf_expand_urls(&text, 1, options, each, nullptr, &error);
        until_failure = -1;
        EXPECT_TRUE(set == SHF_E_USAGE || set == SHF_E_NOMEM) << n;
        EXPECT_TRUE(expanded == SHF_OK || expanded == SHF_E_NOMEM) << n;
        refused += set == SHF_E_NOMEM || expanded == SHF_E_NOMEM;
        shf_options_free(options);
    }
    EXPECT_GT(refused, 3);
}

}  // namespace
