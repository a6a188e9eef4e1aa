// Shards that a child process writes: pipe:COMMAND.
#include "core/error.h"
#include "core/options.h"
#include "io/pipe.h"
#include "io/sources.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using shf::Cancel;
using shf::Error;
using shf::Options;
using shf::Sequential;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

shf::Fault fault_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.fault();
    }
    shf::Fault none;
    none.code = SHF_OK;
    return none;
}

// The bytes that a reader gives before its end or its error.
std::string text_of(Sequential& reader, shf::Fault* fault = nullptr) {
    std::string text;
    std::vector<uint8_t> buffer(100000);
    const shf::Fault end = fault_of([&] {
        while (const size_t size = reader.read(buffer))
            text.append(reinterpret_cast<const char*>(buffer.data()), size);
        reader.finish();
    });
    if (fault != nullptr)
        *fault = end;
    else
        EXPECT_EQ(end.code, SHF_OK) << end.text();
    return text;
}

size_t descriptors() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// True when this process has a child, running or a zombie.
bool has_children() {
    siginfo_t info = {};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool exists(pid_t pid) {
    return ::kill(pid, 0) == 0;
}

class Pipes : public testing::Test {
  protected:
    void SetUp() override { ASSERT_FALSE(has_children()); }
    void TearDown() override { EXPECT_FALSE(has_children()); }

    std::unique_ptr<Sequential> open(const std::string& command) {
        return shf::Sources(options, cancel).open("pipe:" + command)->open_sequential(0);
    }
    std::string run(const std::string& command, shf::Fault* fault = nullptr) {
        return text_of(*open(command), fault);
    }
    shf::Fault fault(const std::string& command) {
        shf::Fault result;
        run(command, &result);
        return result;
    }

    Options options;
    Cancel cancel;
};

TEST_F(Pipes, give_the_output_of_a_command) {
    EXPECT_EQ(run("printf 'a\\0b' | tail -c 2"), std::string("\0b", 2));
    EXPECT_EQ(run("head -c 5000000 /dev/zero"), std::string(5000000, '\0'));
    EXPECT_EQ(run("cat; echo x"), "x\n");  // its stdin is empty and not ours
    EXPECT_EQ(run("sleep 0.05; echo x; sleep 0.05; echo y"), "x\ny\n");
}

TEST_F(Pipes, start_nothing_before_they_are_read) {
    const auto source = shf::Sources(options, cancel).open("pipe:sleep 10");
    EXPECT_FALSE(has_children());
    EXPECT_FALSE(source->seekable());
    EXPECT_FALSE(source->size().has_value());
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(fault_of([&] { source->read(0, buffer); }).code, SHF_E_USAGE);
    EXPECT_EQ(fault_of([&] { source->open_sequential(1); }).code, SHF_E_USAGE);
    EXPECT_FALSE(has_children());
    EXPECT_EQ(fault_of([&] { (void)shf::Sources(options, cancel).open("pipe: "); }).code,
              SHF_E_USAGE);
}

TEST_F(Pipes, are_refused_in_secure_mode) {
    ::setenv("SHARDFEED_SECURE", "1", 1);
    EXPECT_EQ(fault_of([&] { open("true"); }).code, SHF_E_USAGE);
    ::unsetenv("SHARDFEED_SECURE");
    options.set("secure", "true");
    EXPECT_EQ(fault_of([&] { open("true"); }).code, SHF_E_USAGE);
}

TEST_F(Pipes, every_status_but_zero_is_an_error) {
    for (int status = 0; status < 256; ++status) {
        shf::Fault end;
        EXPECT_EQ(run("printf data; exit " + std::to_string(status), &end), "data");
        EXPECT_EQ(end.code, status == 0 ? SHF_OK : SHF_E_CHILD) << status;
        EXPECT_EQ(end.os_error, 0);
        if (status == 0) continue;
        EXPECT_NE(end.cause.find("status " + std::to_string(status)), std::string::npos)
            << end.text();
    }
}

// No archive is empty: what failed is in stderr, whatever the status says.
TEST_F(Pipes, no_data_is_an_error_that_shows_why) {
    for (const char* command : {"true", "cat", "exit 0"}) {
        const shf::Fault nothing = fault(command);
        EXPECT_EQ(nothing.code, SHF_E_TRUNCATED) << command;
        EXPECT_NE(nothing.cause.find("gave no data"), std::string::npos) << nothing.text();
        EXPECT_EQ(nothing.help.find("|| true"), std::string::npos) << nothing.text();
    }
    const shf::Fault hidden = fault("no-such-program s3 cp s3://bucket/a.tar - || true");
    EXPECT_EQ(hidden.code, SHF_E_TRUNCATED);
    EXPECT_NE(hidden.cause.find("no-such-program"), std::string::npos) << hidden.text();
    EXPECT_NE(hidden.cause.find("not found"), std::string::npos) << hidden.text();
    EXPECT_NE(hidden.help.find("|| true"), std::string::npos) << hidden.text();
}

TEST_F(Pipes, death_by_signal_is_an_error) {
    for (const char* name : {"KILL", "TERM", "SEGV", "PIPE", "HUP", "USR1", "ALRM"}) {
        shf::Fault end;
        EXPECT_EQ(run(std::string("printf data; kill -") + name + " $$; sleep 10", &end), "data");
        EXPECT_EQ(end.code, SHF_E_CHILD) << name;
        EXPECT_NE(end.cause.find(std::string("(SIG") + name + ")"), std::string::npos)
            << end.text();
    }
}

TEST_F(Pipes, a_failure_inside_a_pipeline_is_an_error) {
    EXPECT_EQ(fault("false | cat").code, SHF_E_CHILD);
    EXPECT_EQ(fault("(printf x; exit 3) | cat | cat").code, SHF_E_CHILD);
    EXPECT_EQ(fault("no-such-program-here | cat").code, SHF_E_CHILD);
    EXPECT_EQ(fault("yes | head -n 1").code, SHF_E_CHILD);  // 141, as pipefail has it
    EXPECT_NE(fault("no-such-program-here").help.find("not found"), std::string::npos);
}

TEST_F(Pipes, another_shell_runs_them_too) {
    const auto plain = [&](const char* command, shf::Fault* end = nullptr) {
        return text_of(*shf::pipe_source(command, options, cancel, "/bin/sh")->open_sequential(0),
                       end);
    };
    EXPECT_EQ(plain("echo a | cat"), "a\n");
    shf::Fault end;
    EXPECT_EQ(plain("printf a; exit 7", &end), "a");
    EXPECT_EQ(end.code, SHF_E_CHILD);
    EXPECT_NE(end.cause.find("status 7"), std::string::npos);
    EXPECT_EQ(end.cause.find("stderr"), std::string::npos) << end.cause;
    const auto missing = shf::pipe_source("true", options, cancel, "/no/shell");
    end = fault_of([&] { missing->open_sequential(0); });
    EXPECT_EQ(end.code, SHF_E_IO);
    EXPECT_EQ(end.os_error, ENOENT);
}

TEST_F(Pipes, a_failure_repeats) {
    const auto reader = open("exit 3");
    std::vector<uint8_t> buffer(10);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CHILD);
    const auto good = open("echo x");
    EXPECT_EQ(good->read(buffer), 2U);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(good->read(buffer), 0U);
}

TEST_F(Pipes, all_bytes_come_before_the_failure) {
    const auto reader = open("head -c 500000 /dev/zero; exit 1");
    std::this_thread::sleep_for(
        milliseconds(100));  // the child has ended, the pipe is full of data
    shf::Fault end;
    EXPECT_EQ(text_of(*reader, &end).size(), 500000U);
    EXPECT_EQ(end.code, SHF_E_CHILD);
}

TEST_F(Pipes, stderr_is_drained_and_its_end_is_shown) {
    shf::Fault end;
    EXPECT_EQ(run("for i in 1 2 3; do head -c 3000000 /dev/zero | tr '\\0' x >&2; printf a; done; "
                  "printf '\\nfirst\\n\\033[31mlast words\\n' >&2; exit 5",
                  &end),
              "aaa");
    EXPECT_EQ(end.code, SHF_E_CHILD);
    EXPECT_NE(end.cause.find("first | \\x1b[31mlast words"), std::string::npos) << end.cause;
    EXPECT_LT(end.cause.size(), 900U);
    EXPECT_EQ(run("head -c 3000000 /dev/zero >&2; printf a"), "a");
}

TEST_F(Pipes, ready_drains_stderr) {
    const auto reader = open("head -c 3000000 /dev/zero >&2; printf a");
    const auto start = Clock::now();
    while (!reader->ready() && Clock::now() - start < std::chrono::seconds(10))
        std::this_thread::sleep_for(milliseconds(1));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(text_of(*reader), "a");
}

TEST_F(Pipes, stderr_is_shown_without_secrets) {
    const shf::Fault end =
        fault("echo 'cannot get https://me:hunter2@h/x?sig=hunter2' >&2; exit 1");
    EXPECT_NE(end.cause.find("cannot get https://h/x"), std::string::npos) << end.cause;
    EXPECT_EQ(end.text().find("hunter2"), std::string::npos);
}

TEST_F(Pipes, a_hang_ends_with_a_cancel) {
    const auto reader = open("echo x; sleep 1000");
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(reader->read(buffer), 2U);
    EXPECT_FALSE(reader->ready());
    Clock::time_point asked;
    std::thread canceller([&] {
        std::this_thread::sleep_for(milliseconds(50));
        asked = Clock::now();
        cancel.request();
    });
    EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CANCELLED);
    canceller.join();
    EXPECT_LT(Clock::now() - asked, milliseconds(100));
}

TEST_F(Pipes, a_hang_after_the_end_of_data_ends_with_a_cancel) {
    const auto reader = open("echo x; exec >&- 2>&-; sleep 1000");
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(reader->read(buffer), 2U);
    std::thread canceller([&] {
        std::this_thread::sleep_for(milliseconds(50));
        cancel.request();
    });
    EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CANCELLED);
    canceller.join();
}

TEST_F(Pipes, silence_fails_the_child) {
    options.set("pipe_timeout", "100ms");
    EXPECT_EQ(run("for i in 1 2 3 4 5; do sleep 0.05; printf x; done"), "xxxxx");
    for (const char* command : {"echo x; sleep 1000", "echo x; exec >&- 2>&-; sleep 1000"}) {
        const auto start = Clock::now();
        const shf::Fault end = fault(command);
        EXPECT_EQ(end.code, SHF_E_CHILD);
        EXPECT_NE(end.help.find("pipe_timeout"), std::string::npos);
        EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
    }
    const auto reader = open("sleep 1000");  // one that is only looked at
    EXPECT_FALSE(reader->ready());
    std::this_thread::sleep_for(milliseconds(120));
    EXPECT_TRUE(reader->ready());
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CHILD);
}

TEST_F(Pipes, an_early_close_ends_the_whole_group) {
    for (const char* command : {"echo $$; yes", "echo $$; sleep 1000", "echo $$; yes | cat",
                                "(sleep 1000 & echo $!; wait)", "echo $$; kill -STOP $$; yes"}) {
        auto reader = open(command);
        std::vector<uint8_t> buffer(1000);
        const size_t size = reader->read(buffer);
        const pid_t child = std::stoi(
            std::string(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size)));
        EXPECT_TRUE(exists(child));
        const auto start = Clock::now();
        reader.reset();
        EXPECT_LT(Clock::now() - start, std::chrono::seconds(2)) << command;
        // A grandchild is reaped by init, which may take a moment or, in a container without one,
        // never happen; then it is a zombie.
        std::this_thread::sleep_for(milliseconds(20));
        std::ifstream status("/proc/" + std::to_string(child) + "/stat");
        std::string number, name, state = "gone";
        status >> number >> name >> state;
        EXPECT_TRUE(state == "gone" || state == "Z") << command << state;
    }
}

TEST_F(Pipes, a_child_that_ignores_term_is_killed) {
    auto reader = open("trap '' TERM PIPE; echo $$; while :; do sleep 0.1; done");
    std::vector<uint8_t> buffer(1000);
    EXPECT_GT(reader->read(buffer), 0U);
    const pid_t child = std::stoi(reinterpret_cast<const char*>(buffer.data()));
    const auto start = Clock::now();
    reader.reset();
    const auto time = Clock::now() - start;
    EXPECT_GT(time, std::chrono::seconds(4));
    EXPECT_LT(time, std::chrono::seconds(7));
    EXPECT_FALSE(exists(child));
}

TEST_F(Pipes, the_child_has_a_plain_start) {
    struct sigaction old = {}, ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &old);
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const int stray = ::open("/dev/null", O_RDONLY);  // inheritable
    // Signals 1 to 28: the C library's own, 32 and 33, are ignored in all that it spawns.
    EXPECT_EQ(run("grep -E '^Sig(Blk|Ign)' /proc/self/status | grep -o '.......$'"),
              "0000000\n0000000\n");
    EXPECT_EQ(run("exec ls /proc/self/fd"), "0\n1\n2\n3\n");  // 3 is the directory itself
    EXPECT_EQ(run("readlink /proc/self/fd/0"), "/dev/null\n");
    EXPECT_EQ(run("[ $(ps -o pgid= -p $$) = $$ ] && echo own"), "own\n");
    EXPECT_EQ(run("(yes || true) | head -n 1 || true"), "y\n");  // ends, since SIGPIPE works
    struct sigaction after = {};
    ::sigaction(SIGPIPE, nullptr, &after);
    EXPECT_EQ(after.sa_handler, SIG_IGN);
    ::close(stray);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::sigaction(SIGPIPE, &old, nullptr);
}

TEST_F(Pipes, work_with_closed_standard_descriptors) {
    (void)cancel.fd();
    const pid_t child = ::fork();
    if (child == 0) {
        for (int fd = 0; fd < 3; ++fd) ::close(fd);
        shf::Fault end;
        const bool good = run("printf abc; printf x >&2; exit 0", &end) == "abc";
        ::_exit(good && end.code == SHF_OK && ::fcntl(0, F_GETFD) < 0 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(Pipes, a_lost_status_is_no_success) {
    struct sigaction old = {}, ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGCHLD, &ignore, &old);
    const shf::Fault end = fault("echo x");
    ::sigaction(SIGCHLD, &old, nullptr);
    EXPECT_EQ(end.code, SHF_E_CHILD);
    EXPECT_NE(end.help.find("SIGCHLD"), std::string::npos);
}

TEST_F(Pipes, wait_for_their_own_child_only) {
    const pid_t other = ::fork();
    if (other == 0) ::_exit(42);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(run("echo x"), "x\n");
    int status = 0;
    ASSERT_EQ(::waitpid(other, &status, 0), other);
    EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(Pipes, a_forked_process_leaves_the_child_alone) {
    auto reader = open("echo a; sleep 0.3; echo b");
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(reader->read(buffer), 2U);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = fault_of([&] { reader->read(buffer); }).code == SHF_E_FORKED;
        reader.reset();
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(text_of(*reader), "b\n");
}

TEST_F(Pipes, leave_nothing_behind) {
    run("echo x");
    (void)cancel.fd();  // stays open as long as the stream
    const size_t before = descriptors();
    std::vector<uint8_t> buffer(10);
    for (int i = 0; i < 334; ++i) {
        run("echo x");
        fault("echo x >&2; exit 1");
        open("yes")->read(buffer);
    }
    EXPECT_EQ(descriptors(), before);
    EXPECT_FALSE(has_children());
}

TEST_F(Pipes, run_side_by_side) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                const std::string word = std::to_string(t) + "-" + std::to_string(i);
                EXPECT_EQ(text_of(*open("echo " + word)), word + "\n");
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
