// The names of the shards that a writer makes, from a pattern: "train-%06d.tar".
#pragma once

#include <cstdint>
#include <string>

namespace shf {

class ShardName {
  public:
    // `pattern` has at most one number, %d or %0Nd with N up to 20, and %% for a percent sign. In a
    // "pipe:" URL the same. It never reaches printf. Throws Error(USAGE).
    explicit ShardName(const std::string& pattern);

    [[nodiscard]] bool numbered() const { return numbered_; }
    [[nodiscard]] std::string at(uint64_t number) const;

  private:
    std::string before_, after_;
    uint64_t width_ = 0;
    bool numbered_ = false;
};

}  // namespace shf
