// Writes to pipes without a SIGPIPE that the program would see.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace shf {

// While it lives, SIGPIPE of this thread is blocked. The signal of a write is the thread's own
// (POSIX, write(), EPIPE): take() takes it, and nobody sees it.
class PipeSignalBlocked {
  public:
    PipeSignalBlocked() noexcept {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    }
    ~PipeSignalBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    PipeSignalBlocked(const PipeSignalBlocked&) = delete;
    PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

    // After EPIPE.
    void take() const noexcept {
        if (sigismember(&before_, SIGPIPE) == 1) return;  // whoever blocked it takes it
        const timespec now = {};
        (void)::sigtimedwait(&signal_, nullptr, &now);
    }

  private:
    sigset_t signal_, before_;
};

}  // namespace shf
