// Forks: how a handle finds out that it was carried into a child process, without a system call on
// every use, and how a thread keeps others from forking at a bad moment.
#pragma once

#include <cstdint>

namespace shf {

// Grows by one in every forked child (through pthread_atfork).
uint64_t fork_generation() noexcept;

// While one lives, a fork() of another thread waits: for calls into libraries that have locks of
// their own and no fork handlers (OpenSSL), which would never be unlocked in the child. Forks
// wait for calls under way, not for the next ones, so it must not be held where a thread waits for
// something that may not come. A thread may hold several, and may then fork itself.
class ForkHold {
  public:
    ForkHold() noexcept;
    ~ForkHold();
    ForkHold(const ForkHold&) = delete;
    ForkHold& operator=(const ForkHold&) = delete;
};

// Calls `stop` at the end of every thread that held forks after this, under a hold: for what a
// library does there by itself otherwise. At most four different ones; more are ignored.
void stop_at_thread_end(void (*stop)()) noexcept;

}  // namespace shf
