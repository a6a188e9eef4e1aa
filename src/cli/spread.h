// How sizes spread: smallest, median, largest and a histogram, in memory that does not grow.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cli {

class Spread {
  public:
    void add(uint64_t value);

    [[nodiscard]] uint64_t count() const { return count_; }
    [[nodiscard]] uint64_t total() const { return total_; }
    [[nodiscard]] uint64_t smallest() const { return count_ > 0 ? smallest_ : 0; }
    [[nodiscard]] uint64_t largest() const { return largest_; }
    // Right to a sixteenth of it, and exactly below 16.
    [[nodiscard]] uint64_t median() const;

    // The histogram from the smallest value to the largest, a character for each power of two; " "
    // is none, and of the eight bars the lowest is at least one.
    [[nodiscard]] std::string bars() const;
    // {"count":..,"total":..,"min":..,"median":..,"max":..,"histogram":[[FROM,COUNT],...]}: values
    // from FROM to the next power of two.
    [[nodiscard]] std::string json() const;

  private:
    static constexpr unsigned steps = 16;  // cells of each power of two

    [[nodiscard]] uint64_t in_power(unsigned power) const;

    std::array<uint64_t, 64 * steps> cells_ = {};
    uint64_t count_ = 0;
    uint64_t total_ = 0;
    uint64_t smallest_ = UINT64_MAX;
    uint64_t largest_ = 0;
};

}  // namespace cli
