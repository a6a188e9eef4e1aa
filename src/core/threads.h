#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace shf {

// While it lives, this thread and those that it starts have all signals blocked: the handlers of
// the program run on threads of the program. A started thread keeps them blocked.
class SignalsBlocked {
  public:
    SignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

// Starts one more of `wanted` threads for `what` ("readers"), which runs without signals of the
// program. When the system has no room for it, those before it run on, until they are joined.
// Throws Error: LIMIT, or NOMEM where there is no memory for it.
void start_thread(std::vector<std::thread>& threads, std::string_view what, uint64_t wanted,
                  std::function<void()> run);

}  // namespace shf
