// How large the next slab of a reader should be, from the samples that it has seen.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shf {

struct Options;

class SlabSizer {
  public:
    // Samples up to this size are always copied out of their slab.
    static constexpr uint64_t always_copied = 2048;

    // `all_copied`: samples of any size are. `expected`: hardly more bytes than that are wanted at
    // a time, so slabs have that size; 0: not known.
    explicit SlabSizer(const Options& options, bool all_copied = false, uint64_t expected = 0);

    // A sample of `bytes` was found.
    void add(uint64_t bytes) {
        ++seen_;
        seen_bytes_ += bytes;
        if (bytes < smallest_) smallest_ = bytes;
    }
    // The next slab begins behind bytes that are not read, with headers and small members.
    void after_jump() { after_jump_ = true; }
    // In bytes. Asked once for each slab.
    size_t next();

  private:
    const size_t largest_;
    const bool all_copied_;
    const uint64_t expected_;
    bool after_jump_ = false;
    size_t last_;
    // Since the last slab.
    uint64_t seen_ = 0, seen_bytes_ = 0, smallest_ = UINT64_MAX;
};

}  // namespace shf
