// Texts with one number in them.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

// "%d" or "%0Nd" becomes a number, "%%" a percent sign.
class NumberPattern {
  public:
    // Throws Failure(wrong_command_line) unless there is exactly one number.
    explicit NumberPattern(const std::string& pattern);

    [[nodiscard]] std::string text(uint64_t number) const;

  private:
    std::string before_;
    std::string after_;
    size_t width_ = 0;
};

}  // namespace cli
