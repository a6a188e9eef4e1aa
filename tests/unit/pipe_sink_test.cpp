// Shards that a child process takes: the writing side of pipe:COMMAND.
#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "io/pipe.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace shf {
namespace {

size_t descriptors() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

bool has_children() {
    return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

Fault fault_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.fault();
    }
    Fault none;
    none.code = SHF_OK;
    return none;
}

class PipeSinks : public ::testing::TestWithParam<const char*> {
  protected:
    // A shard of `size` bytes for the command.
    Fault give(const std::string& command, size_t size) {
        return fault_of([&] {
            const auto sink = pipe_sink(command, options, cancel, GetParam());
            const std::vector<uint8_t> data(size, 'x');
            sink->write(data);
            sink->sync();
            sink->publish();
        });
    }
    void SetUp() override {
        (void)cancel.fd();  // is opened when it is first wanted
        before = descriptors();
    }
    void TearDown() override {
        EXPECT_EQ(descriptors(), before);
        EXPECT_FALSE(has_children());
    }

    Options options;
    Cancel cancel;
    size_t before = 0;
};

INSTANTIATE_TEST_SUITE_P(Shells, PipeSinks, ::testing::Values("/bin/sh", default_shell()));

TEST_P(PipeSinks, all_bytes_arrive_and_the_status_is_asked) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{5'000'000}})
        EXPECT_EQ(give("test $(wc -c) = " + std::to_string(size), size).code, SHF_OK) << size;
    EXPECT_EQ(give("cat >/dev/null; exit 7", 100).cause, "the command ended with status 7");
    EXPECT_EQ(give("cat >/dev/null; kill -TERM $$", 100).code, SHF_E_CHILD);
}

TEST_P(PipeSinks, what_it_prints_is_in_the_message) {
    EXPECT_EQ(give("echo out; echo err >&2; cat >/dev/null; exit 1", 10).cause,
              "the command ended with status 1; its stderr ends: out | err");
    // More than a pipe holds, on both: nobody waits for anybody.
    EXPECT_EQ(give("head -c 3000000 /dev/zero | tr '\\0' a; cat >/dev/null", 3'000'000).code,
              SHF_OK);
}

TEST_P(PipeSinks, a_command_that_does_not_read_everything) {
    const char* const cause = "the command ended with status 0 before it had read everything";
    EXPECT_EQ(give("true", 10).cause, cause);
    EXPECT_EQ(give("true", 5'000'000).cause, cause);
    EXPECT_EQ(give("head -c 70000 >/dev/null", 5'000'000).cause, cause);
    EXPECT_EQ(give("true", 0).code, SHF_OK);
    EXPECT_EQ(give("exit 3", 5'000'000).cause, "the command ended with status 3");
}

TEST_P(PipeSinks, silence_and_cancel_end_it) {
    options.pipe_timeout = 30'000'000;
    EXPECT_EQ(give("sleep 60", 5'000'000).cause, "the command took no data for 30 ms");
    EXPECT_EQ(give("cat >/dev/null; sleep 60", 10).cause,
              "the command did not end after its input for 30 ms");
    options.pipe_timeout = 0;
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        cancel.request();
    });
    EXPECT_EQ(give("sleep 60", 5'000'000).code, SHF_E_CANCELLED);
    other.join();
}

TEST_P(PipeSinks, what_is_dropped_leaves_no_process) {
    const auto sink = pipe_sink("cat | cat >/dev/null; sleep 60", options, cancel, GetParam());
    const std::vector<uint8_t> data(100'000);
    sink->write(data);
}

TEST_P(PipeSinks, a_forked_child_leaves_the_command_alone) {
    const auto sink = pipe_sink("cat >/dev/null", options, cancel, GetParam());
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char byte = 0;
        ::close(ends[1]);
        (void)!::read(ends[0], &byte, 1);  // until the parent has published
        ::_exit(0);
    }
    ASSERT_GT(child, 0);
    sink->publish();
    ::close(ends[1]);
    ::close(ends[0]);
    int status = 1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(PipeSink, no_command_and_secure_mode) {
    Options options;
    const Cancel cancel;
    EXPECT_EQ(fault_of([&] { (void)pipe_sink(" \t", options, cancel); }).code, SHF_E_USAGE);
    options.secure = true;
    EXPECT_EQ(fault_of([&] { (void)pipe_sink("true", options, cancel); }).code, SHF_E_USAGE);
}

}  // namespace
}  // namespace shf
