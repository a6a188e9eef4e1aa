#include "core/fork.h"

#include <pthread.h>

#include <atomic>

namespace shf {

namespace {

std::atomic<uint64_t> generation{0};

void count_fork() {
    generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

uint64_t fork_generation() noexcept {
    // Registered once, at the first use; a process that never opens a stream has no handler.
    static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
    (void)registered;
    return generation.load(std::memory_order_relaxed);
}

}  // namespace shf
