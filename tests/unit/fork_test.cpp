// Forks wait for the calls that hold them, and only for these; a child can hold forks again.
#include "core/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using shf::ForkHold;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The exit status of a child that runs `body` within ten seconds; -1: it hangs.
template <typename Body>
int child_status(Body body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    const auto limit = Clock::now() + std::chrono::seconds(10);
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
        if (Clock::now() > limit) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
            return -1;
        }
        std::this_thread::sleep_for(milliseconds(1));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

int hold_again() {
    const ForkHold hold;
    const ForkHold inner;
    return 0;
}

TEST(Fork, WaitsForAHold) {
    std::atomic<bool> held{false}, let_go{false};
    std::thread thread([&] {
        const ForkHold hold;
        held = true;
        held.notify_all();
        std::this_thread::sleep_for(milliseconds(50));
        let_go = true;
    });
    held.wait(false);
    EXPECT_EQ(child_status([&] { return let_go ? hold_again() : 1; }), 0);
    thread.join();
}

// What the holders of the parent did not let go of does not hold the child.
TEST(Fork, OfTheThreadThatHolds) {
    const uint64_t before = shf::fork_generation();
    const ForkHold hold;
    {
        const ForkHold inner;
        EXPECT_EQ(child_status([&] { return shf::fork_generation() == before + 1 ? 0 : 1; }), 0);
        EXPECT_EQ(child_status([] { return child_status(hold_again); }), 0);
    }
    EXPECT_EQ(child_status(hold_again), 0);
    EXPECT_EQ(shf::fork_generation(), before);
}

// Three threads always hold, two fork: none starves, and no child meets a lock that is held.
TEST(Fork, ManyAtOnce) {
    std::mutex mutex;  // stands for that of another library
    std::atomic<bool> stop{false};
    std::vector<std::thread> holders, forkers;
    for (int n = 0; n < 3; ++n)
        holders.emplace_back([&] {
            while (!stop) {
                const ForkHold hold;
                const ForkHold inner;
                const std::lock_guard lock(mutex);
            }
        });
    std::atomic<int> wrong{0};
    for (int n = 0; n < 2; ++n)
        forkers.emplace_back([&] {
            for (int i = 0; i < 40; ++i)
                wrong += child_status([&] {
                             const ForkHold hold;
                             const std::lock_guard lock(mutex);
                             return 0;
                         }) != 0;
        });
    for (std::thread& thread : forkers) thread.join();
    stop = true;
    for (std::thread& thread : holders) thread.join();
    EXPECT_EQ(wrong, 0);
}

std::atomic<int> ends{0};

TEST(Fork, ThreadsThatHeldEndUnderAHold) {
    shf::stop_at_thread_end([] { ++ends; });
    shf::stop_at_thread_end([] { ++ends; });  // another function
    std::thread([] {}).join();
    EXPECT_EQ(ends, 0);
    std::thread([] {
        for (int n = 0; n < 3; ++n) const ForkHold hold;
    }).join();
    EXPECT_EQ(ends, 2);
}

}  // namespace
