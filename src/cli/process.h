// Child processes that run a command of the user.
#pragma once

#include "cli/interrupts.h"

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cli {

struct Command {
    std::vector<std::string> words;        // the program, found in PATH, and its arguments
    std::string folder = {};               // where it runs; empty: here
    std::vector<std::string> environment;  // NAME=VALUE beside what this process has
    // File descriptors that become its standard input and output; -1: /dev/null as input, standard
    // error as output.
    int input = -1;
    int output = -1;
};

// A child in a process group of its own, which is ended with it: by SIGTERM when this command is
// interrupted, and after 5 s by SIGKILL. Any thread.
class Process {
  public:
    // Throws Failure when it cannot be started.
    explicit Process(const Command& command);
    // Kills what still runs.
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // Waits for its end. Returns "" for status 0, else what happened: "its status is 3".
    std::string wait();

  private:
    std::atomic<pid_t> pid_ = 0;  // 0: it has ended
    int handle_ = -1;             // a pidfd; -1 where the system has none
    std::optional<Cancellable> interrupt_;
};

}  // namespace cli
