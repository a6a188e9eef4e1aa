// A shell command that runs beside us: its standard output is read, or its standard input written.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "io/descriptor.h"
#include "io/pipe_watch.h"

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace shf {

// It has a process group of its own, which is ended with this object: TERM, time to clean up, KILL;
// no zombie is left. One thread at a time, of the process that started it: in a forked child only
// the destructor may be called, which leaves the command alone.
class Command {
  public:
    enum class Flow : uint8_t {
        to_us,   // we read its standard output; its standard input is empty
        from_us  // we write its standard input; what it prints is kept as that of stderr is
    };
    // Starts it. `silence`: nanoseconds that it may take for nothing, 0: no limit. Throws Error.
    // `cancel` must outlive it.
    Command(const std::string& command, const char* shell, Flow flow, uint64_t silence,
            const Cancel& cancel);
    ~Command();
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    // Our end, which does not block.
    [[nodiscard]] int fd() const { return end_.get(); }
    [[nodiscard]] bool is_ours() const { return ::getpid() == owner_; }
    // When what begins to wait at `start` has waited too long.
    [[nodiscard]] Clock::time_point deadline(Clock::time_point start) const;
    // Until our end is ready for `events` of poll(). False: not before `deadline`. Throws
    // Error(CANCELLED).
    bool wait(short events, Clock::time_point deadline);
    // Takes what is in stderr now, so that the command need not wait for room, and keeps the end.
    void drain();
    // "; its stderr ends: ...", or nothing.
    [[nodiscard]] std::string excerpt() const;

    // Closes our end: what reads it finds the end of its input.
    void close_end();
    // Waits until it has ended, and what is left of its pipeline is told to. False: not before
    // `deadline`. Throws Error(CANCELLED).
    bool wait_for_end(Clock::time_point deadline);
    // After that: why it is not proven that it went well; nothing: it did.
    [[nodiscard]] std::optional<Error> fault() const;

  private:
    [[nodiscard]] std::optional<siginfo_t> look(int flags) const;
    void stop() noexcept;
    void discard() noexcept;

    const Cancel& cancel_;
    const Flow flow_;
    const uint64_t silence_;
    const pid_t owner_ = ::getpid();
    pid_t child_ = -1;  // -1 once it has been waited for
    std::optional<PipeWatch> watch_;
    Descriptor end_, err_;
    std::string tail_;
    siginfo_t info_ = {};  // of its end
};

// What to do about a command that failed.
inline constexpr const char* try_in_a_shell = "run the command in a shell to see what is wrong";

}  // namespace shf
