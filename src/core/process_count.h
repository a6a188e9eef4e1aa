// A count of things that a process has: of threads, so 0 again in a forked child.
#pragma once

#include "core/fork.h"

#include <atomic>
#include <cstdint>

namespace shf {

class ProcessCount {
  public:
    void add(int64_t more) {
        renew();
        count_.fetch_add(more);
    }
    [[nodiscard]] int64_t get() {
        renew();
        return count_.load();
    }

  private:
    void renew() {
        const uint64_t now = fork_generation();
        if (generation_.load() != now && generation_.exchange(now) != now) count_.store(0);
    }

    std::atomic<int64_t> count_{0};
    std::atomic<uint64_t> generation_{0};
};

}  // namespace shf
