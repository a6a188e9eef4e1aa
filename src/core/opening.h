// The time in which a call opens something. Nobody has a handle by which it could be cancelled, so
// it asks the program itself (shf_options_set_interrupt), and it ends when the option `timeout`
// says so.
#pragma once

#include <shardfeed.h>

#include <chrono>

namespace shf {

struct Options;

// What is opened. A stream has the option `timeout` for all its later calls, and a program that
// waits in short steps sets a short one: the opening of a stream, or of members in sequence, is
// ended by the interrupt function alone, when there is one. A call that reads on the program's own
// thread ends in the same way, and can be repeated: it opens nothing.
enum class Opens : uint8_t { stream, other, nothing };

// Made by the call, on its stack. Only this thread is asked, and only inside the call, so that the
// program's function runs on no other thread. An opening inside another one (a log function that
// opens an archive) replaces it until it is done.
class Opening {
  public:
    Opening(const Options& options, Opens what);
    ~Opening();
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

    // Whether this thread is opening something.
    static bool active() noexcept { return innermost != nullptr; }
    // Throws Error(CANCELLED or TIMEOUT) when the opening of this thread is to end. For every wait
    // and for every loop that may take more than some milliseconds; nothing to do elsewhere.
    static void check() {
        if (innermost != nullptr) innermost->ask();
    }

  private:
    using Clock = std::chrono::steady_clock;

    void ask();

    static thread_local constinit Opening* innermost;

    Opening* const outer_;
    const Options& options_;
    const Opens what_;
    Clock::time_point deadline_ = Clock::time_point::max();
    Clock::time_point next_question_;
};

// True for the errors that say that the call is to end. A caller that continues after other errors
// must not continue after these.
constexpr bool ends_call(int32_t code) noexcept {
    return code == SHF_E_CANCELLED || code == SHF_E_TIMEOUT;
}

}  // namespace shf
