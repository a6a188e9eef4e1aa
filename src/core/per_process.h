// One object for each process, never destroyed: a forked child makes its own, so that it meets no
// mutex that a thread of its parent held, and threads of a program that exits may still use it.
#pragma once

#include "core/fork.h"

#include <atomic>
#include <cstdint>

namespace shf {

template <typename Value>
class PerProcess {
  public:
    constexpr PerProcess() = default;
    PerProcess(const PerProcess&) = delete;
    PerProcess& operator=(const PerProcess&) = delete;

    // Throws std::bad_alloc.
    Value& get() {
        const uint64_t now = fork_generation();
        Made* made = made_.load(std::memory_order_acquire);
        while (!made || made->generation != now) {
            auto* const mine = new Made{now, {}};
            if (made_.compare_exchange_strong(made, mine, std::memory_order_acq_rel))
                return mine->value;
            delete mine;
        }
        return made->value;
    }

  private:
    struct Made {
        uint64_t generation;
        Value value;
    };
    std::atomic<Made*> made_{nullptr};
};

}  // namespace shf
