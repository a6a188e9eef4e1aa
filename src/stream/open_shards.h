// How many shards the readers of all streams of this process have open, and how many of those
// readers wait for their consumer: for a reader that gets no descriptor.
#pragma once

#include "core/process_count.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace shf {

class OpenShards {
  public:
    // Counts one while it lives.
    class Count {
      public:
        Count() = default;
        explicit Count(ProcessCount& of) : of_(&of) { of_->add(1); }
        ~Count() {
            if (!of_) return;
            of_->add(-1);
            moves.fetch_add(1);
        }
        Count(Count&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        Count& operator=(Count&& other) noexcept {
            std::swap(of_, other.of_);
            return *this;
        }

      private:
        ProcessCount* of_ = nullptr;
    };

    static Count opened() { return Count(open); }
    static Count waiting() { return Count(asleep); }

    [[nodiscard]] static int64_t count() { return open.get(); }
    // Whether all that are open wait for their consumers.
    [[nodiscard]] static bool all_wait() { return asleep.get() >= open.get(); }
    // Changes whenever one is closed or continues.
    [[nodiscard]] static uint64_t changes() { return moves.load(); }

  private:
    static inline ProcessCount open, asleep;
    static inline std::atomic<uint64_t> moves{0};
};

}  // namespace shf
