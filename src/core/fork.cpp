#include "core/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

namespace shf {

namespace {

std::atomic<uint64_t> generation{0};

// The threads that hold forks, and this bit while a thread waits to fork or forks. An int, for
// which the standard library waits on a futex without state of its own.
constexpr int forking = 1 << 30;
constinit std::atomic<int> holders{0};
// The thread that forks has it.
constinit std::mutex forks;
constinit thread_local int depth = 0;

// The holds of this thread count once.
int own() {
    return depth > 0 ? 1 : 0;
}

void before_fork() {
    forks.lock();
    int seen = holders.fetch_or(forking, std::memory_order_acq_rel) | forking;
    while ((seen & ~forking) > own()) {
        holders.wait(seen, std::memory_order_acquire);
        seen = holders.load(std::memory_order_acquire);
    }
}

void after_fork() {
    holders.fetch_and(~forking, std::memory_order_release);
    holders.notify_all();
    forks.unlock();
}

void after_fork_in_child() {
    generation.fetch_add(1, std::memory_order_relaxed);
    holders.store(own(), std::memory_order_release);
    forks.unlock();
}

void register_handlers() {
    // Once, at the first use; a process that never opens a stream has no handler.
    static const int registered = pthread_atfork(before_fork, after_fork, after_fork_in_child);
    (void)registered;
}

constinit std::array<std::atomic<void (*)()>, 4> stops{};

struct ThreadEnd {
    ThreadEnd() = default;
    ThreadEnd(const ThreadEnd&) = delete;
    ThreadEnd& operator=(const ThreadEnd&) = delete;
    ~ThreadEnd() {
        const ForkHold hold;
        for (const std::atomic<void (*)()>& stop : stops)
            if (void (*const call)() = stop.load(std::memory_order_acquire)) call();
    }
};

// False where there is no memory for it. glibc takes some for the destructor and ends the process
// without it, so there must be a piece that it can have.
bool register_thread_end() noexcept {
    constexpr size_t enough = 4096;  // more than what malloc keeps for sizes of its own
    void* const memory = ::operator new(enough, std::nothrow);
    if (!memory) return false;
    ::operator delete(memory);
    static thread_local const ThreadEnd end;
    (void)end;
    return true;
}
constinit thread_local bool has_thread_end = false;

}  // namespace

uint64_t fork_generation() noexcept {
    register_handlers();
    return generation.load(std::memory_order_relaxed);
}

ForkHold::ForkHold() noexcept {
    if (depth > 0) {
        ++depth;
        return;
    }
    register_handlers();
    if (!has_thread_end) has_thread_end = register_thread_end();
    int seen = holders.load(std::memory_order_relaxed);
    for (;;) {
        if (seen & forking) {
            holders.wait(seen, std::memory_order_relaxed);
            seen = holders.load(std::memory_order_relaxed);
        } else if (holders.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                                 std::memory_order_relaxed)) {
            break;
        }
    }
    depth = 1;
}

ForkHold::~ForkHold() {
    if (--depth > 0) return;
    if (holders.fetch_sub(1, std::memory_order_release) & forking) holders.notify_all();
}

void stop_at_thread_end(void (*stop)()) noexcept {
    for (std::atomic<void (*)()>& place : stops) {
        void (*empty)() = nullptr;
        if (place.compare_exchange_strong(empty, stop, std::memory_order_acq_rel) || empty == stop)
            return;
    }
}

}  // namespace shf
