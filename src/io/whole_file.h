// A file that cannot be read in place, taken into memory.
#pragma once

#include "io/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shf {

// Memory from malloc.
class WholeFile {
  public:
    // Puts in front what was read of the input already. Throws std::bad_alloc.
    void put(std::span<const uint8_t> bytes);
    // Reads all that `input` still has, at most `most` bytes with what is here. Throws Error:
    // LIMIT, with this help, and what reading throws; after TIMEOUT and CANCELLED it can be called
    // again.
    void take(Sequential& input, uint64_t most, const char* help);
    [[nodiscard]] std::span<const uint8_t> bytes() const { return {bytes_.get(), size_}; }

  private:
    struct Free {
        void operator()(uint8_t* bytes) const;
    };
    void grow(size_t capacity);

    std::unique_ptr<uint8_t, Free> bytes_;
    size_t size_ = 0, capacity_ = 0;
};

}  // namespace shf
