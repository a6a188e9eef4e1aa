// Ctrl-C and the other signals that end a command: what waits in the library is cancelled, so that
// files that are not whole are removed, and then the process ends by that signal.
#pragma once

#include <shardfeed.h>

#include <csignal>
#include <memory>

namespace cli {

// A thread that waits for SIGINT, SIGTERM and SIGHUP, but for those that whoever started the
// process has switched off (nohup). Made before all other threads. The second signal ends the
// process at once.
class Interrupts {
  public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    // Ends the process by the signal that came, if one did.
    void raise() const;

  private:
    sigset_t mask_before_;
    void (*pipe_before_)(int);
};

// Whether such a signal came. Any thread.
bool interrupted();

// Cancels a stream, members in sequence, a writer, or anything else when a signal comes while this
// exists.
class Cancellable {
  public:
    explicit Cancellable(shf_stream* stream);
    explicit Cancellable(shf_members* members);
    explicit Cancellable(shf_writer* writer);
    // Calls `cancel` with `handle` instead, on the thread that waits for signals.
    Cancellable(void* handle, void (*cancel)(void*));
    ~Cancellable();
    Cancellable(const Cancellable&) = delete;
    Cancellable& operator=(const Cancellable&) = delete;

  private:
    void* handle_;
};

}  // namespace cli
