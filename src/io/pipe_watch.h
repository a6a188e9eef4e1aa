// Ends the commands of pipes when this process is gone: killed, crashed, or replaced by exec. While
// it lives the readers of pipes do that.
#pragma once

#include "core/fork.h"

#include <sys/types.h>

#include <cstdint>

namespace shf {

// One command, from before it is started until it is to be waited for. Any thread.
class PipeWatch {
  public:
    // `output` is the pipe that the command will write into.
    explicit PipeWatch(int output);
    ~PipeWatch() { end(); }
    PipeWatch(const PipeWatch&) = delete;
    PipeWatch& operator=(const PipeWatch&) = delete;

    // The command runs, in the process group `group`.
    void started(pid_t group);
    // From now on the number of the group may become that of a stranger. Called before the child is
    // waited for.
    void end() noexcept;

    // While there is one, the process that watches stays when no command is left: for streams,
    // which run one after another.
    class Stay {
      public:
        Stay();
        ~Stay();
        Stay(const Stay&) = delete;
        Stay& operator=(const Stay&) = delete;

      private:
        const uint64_t generation_ = fork_generation();
    };

  private:
    uint64_t key_ = 0;
    const uint64_t generation_ = fork_generation();  // a forked child has no part in it
    bool ended_ = false;
};

}  // namespace shf
