// Which of several outputs a sample goes to, by its key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

class Shares {
  public:
    // "train:0.9,val:0.1": names and shares, in any unit. An empty text: one output without a name.
    // Throws Failure(wrong_command_line).
    explicit Shares(const std::string& text);

    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
    // The number of the output. It depends on the key, the shares and their order alone: XXH3 of
    // the key, as a fraction of 2^64, is compared with the sums of the shares.
    [[nodiscard]] size_t part_of(std::string_view key) const;

  private:
    std::vector<std::string> names_;
    std::vector<double> ends_;  // sums of the shares so far, the last one is 1
};

}  // namespace cli
