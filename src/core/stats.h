// The counters of one stream (SHF_STAT_*): 64 bits, readable at any time from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace shf {

class Stats {
  public:
    static constexpr int32_t size = 96;

    void add(int32_t stat, uint64_t count = 1) noexcept {
        values_[static_cast<size_t>(stat)].fetch_add(count, std::memory_order_relaxed);
    }
    // For counters that one thread alone writes: no locked instruction.
    void add_alone(int32_t stat, uint64_t count) noexcept {
        auto& value = values_[static_cast<size_t>(stat)];
        value.store(value.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    }
    [[nodiscard]] uint64_t get(int32_t stat) const noexcept {
        return values_[static_cast<size_t>(stat)].load(std::memory_order_relaxed);
    }
    void set(int32_t stat, uint64_t value) noexcept {
        values_[static_cast<size_t>(stat)].store(value, std::memory_order_relaxed);
    }

  private:
    std::array<std::atomic<uint64_t>, size> values_{};
};

// Property `what` (SHF_COUNTER_*) of a counter, or NULL.
const char* describe_stat(int32_t stat, int32_t what) noexcept;

}  // namespace shf
