// Messages for the program, through the callback that it set.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace shf {

struct Options;

// Passes a message on when the program wants messages of this level. Only on the thread that is
// inside a call of the library, and on threads with a LogQueue.
void log(const Options& options, int32_t level, const std::string& message);

// Messages of threads that work for a call, until the thread that is inside it passes them on.
class LogQueue {
  public:
    // While it lives, what the thread that made it logs goes into the queue.
    class Use {
      public:
        explicit Use(LogQueue& queue) noexcept;
        ~Use();
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
    };
    static bool active() noexcept { return current != nullptr; }
    // On the thread that is inside the call.
    void pass_on(const Options& options);

  private:
    friend void log(const Options& options, int32_t level, const std::string& message);

    static thread_local constinit LogQueue* current;

    std::mutex mutex_;
    std::vector<std::pair<int32_t, std::string>> messages_;
};

}  // namespace shf
