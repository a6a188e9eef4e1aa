// The commands of pipes end with the process that reads them, however it ends.
#include "core/error.h"
#include "core/options.h"
#include "io/sources.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using shf::Cancel;
using shf::Options;
using shf::Sequential;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

struct Process {
    pid_t pid = 0, group = 0, parent = 0;
    char state = 0;
    std::string command_line;
};

// Nothing when the process has ended.
std::string contents(const std::filesystem::path& path) {
    std::string text(4096, '\0');
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? 0 : ::read(fd, text.data(), text.size());
    ::close(fd);
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
}

// All processes that run; a zombie does not.
std::vector<Process> processes() {
    std::vector<Process> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != name.npos) continue;
        const std::string stat = contents(entry.path() / "stat");
        const size_t bracket = stat.rfind(')');
        if (bracket == stat.npos) continue;
        Process process;
        process.pid = std::stoi(name);
        std::istringstream rest(stat.substr(bracket + 1));
        rest >> process.state >> process.parent >> process.group;
        if (process.state == 'Z' || process.state == 'X') continue;
        process.command_line = contents(entry.path() / "cmdline");
        found.push_back(std::move(process));
    }
    return found;
}

size_t count(const std::function<bool(const Process&)>& wanted) {
    const auto all = processes();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), wanted));
}

size_t count_group(pid_t group) {
    return count([group](const Process& process) { return process.group == group; });
}

pid_t watcher_of(pid_t parent) {
    for (const Process& process : processes())
        if (process.parent == parent &&
            process.command_line.find("shardfeed-pipe-watch") != std::string::npos)
            return process.pid;
    return 0;
}

// Waits until none is left, and says how long that took.
bool ends(const char* what, const std::function<size_t()>& left) {
    const auto start = Clock::now();
    while (left() > 0) {
        if (Clock::now() - start > seconds(20)) return false;
        std::this_thread::sleep_for(milliseconds(10));
    }
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    std::printf("     gone %d ms after %s\n", static_cast<int>(took.count()), what);
    return true;
}

bool group_ends(const char* what, pid_t group) {
    return ends(what, [group] { return count_group(group); });
}

// A process that runs `action`, which gets the end of a pipe for its reports, and then sleeps.
struct Consumer {
    explicit Consumer(const std::function<void(int)>& action) {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) != 0) std::abort();
        pid = ::fork();
        if (pid == 0) {
            ::close(fds[0]);
            ::signal(SIGHUP, SIG_DFL);  // which nohup, around the tests, lets it ignore
            action(fds[1]);
            for (;;) ::pause();
        }
        ::close(fds[1]);
        reports = fds[0];
    }
    ~Consumer() {
        end(SIGKILL);
        ::close(reports);
    }
    Consumer(const Consumer&) = delete;
    Consumer& operator=(const Consumer&) = delete;

    // The number that it reports next.
    [[nodiscard]] pid_t next() const {
        pid_t number = 0;
        return ::read(reports, &number, sizeof number) == sizeof number ? number : -1;
    }
    void end(int signal) {
        if (pid <= 0) return;
        ::kill(pid, signal);
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
        pid = -1;
    }

    pid_t pid = -1;
    int reports = -1;
};

void report(int fd, pid_t number) {
    if (::write(fd, &number, sizeof number) != sizeof number) ::_exit(1);
}

// Opens a pipe whose command prints its process id first, reads that, and reports it.
std::unique_ptr<Sequential> open_and_report(const std::string& command, int reports) {
    static const Options options;
    static const Cancel cancel;
    auto reader =
        shf::Sources(options, cancel).open("pipe:echo $$; " + command)->open_sequential(0);
    std::string text;
    uint8_t byte = 0;
    while (reader->read({&byte, 1}) == 1 && byte != '\n') text += static_cast<char>(byte);
    report(reports, std::stoi(text));
    return reader;
}

constexpr const char* stubborn = "trap '' TERM HUP INT PIPE; while :; do sleep 0.1; done";

const char* const commands[] = {
    "sleep 1000", "sleep 1000 | cat | cat",
    "yes | cat",  "(trap '' TERM HUP INT PIPE; while :; do sleep 0.1; done) | cat",
    stubborn,     "kill -STOP $$; sleep 1000",
};

TEST(PipeWatch, ends_all_of_the_group_when_the_reader_is_killed) {
    for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGINT})
        for (const char* command : commands) {
            Consumer consumer([&](int reports) {
                const auto reader = open_and_report(command, reports);
                for (;;) ::pause();
            });
            const pid_t group = consumer.next();
            ASSERT_GT(group, 0);
            EXPECT_GT(count_group(group), 0U);
            consumer.end(signal);
            EXPECT_TRUE(group_ends(command, group)) << signal << ": " << command;
        }
}

TEST(PipeWatch, ends_them_when_the_reader_ends_by_itself) {
    Consumer consumer([](int reports) {
        const auto reader = open_and_report("sleep 1000", reports);
        ::_exit(0);
    });
    const pid_t group = consumer.next();
    ASSERT_GT(group, 0);
    EXPECT_TRUE(group_ends("an exit", group));
}

TEST(PipeWatch, does_not_depend_on_the_thread_that_opened_the_pipe) {
    Consumer consumer([](int reports) {
        std::unique_ptr<Sequential> reader;
        std::thread([&] { reader = open_and_report("sleep 1000", reports); }).join();
        report(reports, 1);
        for (;;) ::pause();
    });
    const pid_t group = consumer.next();
    ASSERT_EQ(consumer.next(), 1);
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_GT(count_group(group), 0U);  // the end of the thread ends nothing
    consumer.end(SIGKILL);
    EXPECT_TRUE(group_ends("the process of a thread that ended before", group));
}

TEST(PipeWatch, does_not_depend_on_forked_children) {
    Consumer consumer([](int reports) {
        const auto reader = open_and_report("sleep 1000", reports);
        const pid_t worker = ::fork();
        if (worker == 0) {
            const auto own = open_and_report(stubborn, reports);
            for (;;) ::pause();
        }
        report(reports, worker);
        for (;;) ::pause();
    });
    pid_t group = consumer.next();
    pid_t numbers[2] = {consumer.next(), consumer.next()};
    // The two reports of two processes may come in any order.
    pid_t worker = numbers[0], own = numbers[1];
    if (count_group(worker) > 0) std::swap(worker, own);
    ASSERT_GT(count_group(own), 0U);
    consumer.end(SIGKILL);
    EXPECT_TRUE(group_ends("the parent of a worker", group));
    EXPECT_EQ(::kill(worker, 0), 0);
    EXPECT_GT(count_group(own), 0U);  // that of the worker goes on
    ::kill(worker, SIGKILL);
    EXPECT_TRUE(group_ends("a worker", own));
}

TEST(PipeWatch, of_a_worker_ends_nothing_of_its_parent) {
    Consumer consumer([](int reports) {
        const auto reader = open_and_report("sleep 1000", reports);
        const pid_t worker = ::fork();
        if (worker == 0) {
            const auto own = open_and_report("sleep 1000", reports);
            ::kill(::getpid(), SIGKILL);
        }
        for (;;) ::pause();
    });
    const pid_t group = consumer.next(), own = consumer.next();
    EXPECT_TRUE(group_ends("a worker", own));
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_GT(count_group(group), 0U);
    consumer.end(SIGKILL);
    EXPECT_TRUE(group_ends("its parent", group));
}

TEST(PipeWatch, ends_them_when_the_process_runs_another_program) {
    Consumer consumer([](int reports) {
        const auto reader = open_and_report(stubborn, reports);
        ::execl("/bin/sleep", "sleep", "1000", nullptr);
        ::_exit(1);
    });
    const pid_t group = consumer.next();
    ASSERT_GT(group, 0);
    EXPECT_TRUE(group_ends("exec", group));
    EXPECT_EQ(::kill(consumer.pid, 0), 0);
}

TEST(PipeWatch, survives_signals_to_the_process_group) {
    for (const int signal : {SIGKILL, SIGTERM, SIGHUP, SIGINT}) {
        Consumer consumer([](int reports) {
            ::setpgid(0, 0);
            const auto reader = open_and_report("sleep 1000", reports);
            for (;;) ::pause();
        });
        const pid_t group = consumer.next();
        const pid_t watcher = watcher_of(consumer.pid);
        ASSERT_GT(watcher, 0);
        if (signal != SIGKILL) ::kill(watcher, signal);
        ::kill(-consumer.pid, signal);
        EXPECT_TRUE(group_ends("its group", group)) << signal;
        EXPECT_TRUE(ends("the watcher", [&] {
            return count([&](const Process& process) { return process.pid == watcher; });
        }));
    }
}

TEST(PipeWatch, is_started_again_when_it_was_killed_or_stopped) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
        Consumer consumer([signal](int reports) {
            std::vector<std::unique_ptr<Sequential>> readers;
            readers.push_back(open_and_report("sleep 1000", reports));
            ::kill(watcher_of(::getpid()), signal);
            std::this_thread::sleep_for(milliseconds(100));
            // A stopped one is noticed when its socket is full.
            if (signal == SIGSTOP)
                for (int i = 0; i < 200; ++i)
                    (void)open_and_report("true", ::open("/dev/null", O_WRONLY));
            readers.push_back(open_and_report("sleep 1000", reports));
            for (;;) ::pause();
        });
        const pid_t first = consumer.next(), second = consumer.next();
        consumer.end(SIGKILL);
        EXPECT_TRUE(group_ends("a watcher that was lost", second));
        EXPECT_TRUE(group_ends("a watcher that was lost", first));
    }
}

// Kills a process that does nothing but open and close pipes, at any point.
void kill_while_pipes_start(int rounds) {
    std::mt19937 random(7);
    for (int round = 0; round < rounds; ++round) {
        const std::string mark = "1000." + std::to_string(::getpid()) + std::to_string(round);
        Consumer consumer([&](int reports) {
            std::vector<std::thread> threads;
            report(reports, 1);
            for (int t = 0; t < 3; ++t)
                threads.emplace_back([&] {
                    const Options options;
                    const Cancel cancel;
                    for (;;) {
                        auto source = shf::Sources(options, cancel).open("pipe:exec sleep " + mark);
                        (void)source->open_sequential(0);
                    }
                });
            for (;;) ::pause();
        });
        ASSERT_EQ(consumer.next(), 1);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
        consumer.end(SIGKILL);
        // A command that was being started shows its name a moment later.
        const auto start = Clock::now();
        auto free_since = start;
        std::string left;
        while (Clock::now() - free_since < milliseconds(300) &&
               Clock::now() - start < seconds(20)) {
            left.clear();
            for (const Process& process : processes())
                if (process.command_line.find(mark) != std::string::npos)
                    left += std::to_string(process.pid) + " " + process.command_line;
            if (!left.empty()) free_since = Clock::now();
            std::this_thread::sleep_for(milliseconds(5));
        }
        ASSERT_EQ(left, "") << "round " << round;
    }
}

TEST(PipeWatch, ends_a_command_that_is_being_started) {
    kill_while_pipes_start(6);
}

TEST(PipeWatch, ends_a_command_that_is_being_started_often) {
    kill_while_pipes_start(200);
}

}  // namespace
