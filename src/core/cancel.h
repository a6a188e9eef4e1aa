// Cancellation of one stream: a flag that loops look at and a descriptor that waits poll on.
#pragma once

#include <atomic>

namespace shf {

class Cancel {
  public:
    Cancel() = default;
    ~Cancel();
    Cancel(const Cancel&) = delete;
    Cancel& operator=(const Cancel&) = delete;

    // Makes requested() true and fd() readable, for good. Any thread.
    void request() noexcept;
    [[nodiscard]] bool requested() const noexcept {
        return requested_.load(std::memory_order_acquire);
    }
    // Throws Error(SHF_E_CANCELLED) when a cancel was requested. While this thread opens something
    // it is asked too whether that is to end: see Opening.
    void check() const;
    // Readable once a cancel was requested. Opened at the first call, so that streams over files
    // hold none. -1 when the system has no descriptor left, and while this thread opens something:
    // then check() has to be called every few milliseconds.
    [[nodiscard]] int fd() const;

  private:
    std::atomic<bool> requested_{false};
    mutable std::atomic<int> fd_{-1};
};

}  // namespace shf
