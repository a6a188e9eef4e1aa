// Which samples are taken: by number and by key.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace cli {

// "N", "START:STOP" or "START:STOP:STEP", of numbers that count from 0. Any part may be empty.
class Slice {
  public:
    // `from_zero`: steps are multiples of STEP, as tarp has them, and not counted from START.
    // Throws Failure(wrong_command_line).
    Slice(const std::string& text, bool from_zero);

    [[nodiscard]] bool takes(uint64_t number) const {
        return number >= start_ && number < stop_ && (number - origin_) % step_ == 0;
    }
    // Whether no number from this one on is taken.
    [[nodiscard]] bool ends_before(uint64_t number) const { return number >= stop_; }

  private:
    uint64_t start_ = 0;
    uint64_t stop_ = std::numeric_limits<uint64_t>::max();
    uint64_t step_ = 1;
    uint64_t origin_ = 0;
};

// Keys: exact ones, shell patterns, and @FILE with one of these on each line.
class KeyList {
  public:
    // Throws Failure: a file that cannot be read.
    explicit KeyList(const std::vector<std::string>& words);

    [[nodiscard]] bool empty() const { return keys_.empty() && patterns_.empty(); }
    [[nodiscard]] bool has(std::string_view key) const;

  private:
    void add(const std::string& word);

    std::unordered_set<std::string> keys_;
    std::vector<std::string> patterns_;
};

}  // namespace cli
