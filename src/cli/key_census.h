// Whether keys come more than once, in bounded memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

class KeyCensus {
  public:
    // Keys that are remembered, by a hash of 64 bits: 128 MiB at most.
    static constexpr uint64_t most = uint64_t{1} << 23;

    // Takes a key. Returns whether it came before.
    bool add(std::string_view key);

    [[nodiscard]] uint64_t repeated() const { return repeated_; }
    // Whether there were more keys than are remembered.
    [[nodiscard]] bool is_full() const { return held_ == most; }

  private:
    void grow();

    std::vector<uint64_t> table_;  // of hashes, by open addressing; 0 is a free place
    uint64_t held_ = 0;
    uint64_t repeated_ = 0;
};

}  // namespace cli
