#include "core/slab_sizer.h"

#include "core/options.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shf {

namespace {

// Slabs stay in the second-level cache while they are filled and walked.
constexpr size_t smallest_slab = 4096;
constexpr size_t slab_after_jump = 8192;
constexpr size_t first_slab = 56 * 1024;
constexpr size_t copied_slab = 256 * 1024;
constexpr size_t largest_slab = 512 * 1024;

}  // namespace

SlabSizer::SlabSizer(const Options& options, bool all_copied, uint64_t expected)
    : largest_(std::max<size_t>(first_slab, static_cast<size_t>(options.memory / 16))),
      all_copied_(all_copied),
      expected_(expected),
      last_(first_slab) {}

size_t SlabSizer::next() {
    if (std::exchange(after_jump_, false)) return slab_after_jump;
    if (expected_ > 0)
        return static_cast<size_t>(std::clamp<uint64_t>(expected_, smallest_slab, largest_slab));
    size_t size = last_;
    if (all_copied_ || (seen_ > 0 && seen_bytes_ / seen_ <= always_copied)) {
        size = copied_slab;
    } else if (seen_ > 0) {
        // Samples that stay in the slab bound its size, because a kept sample keeps it: less than
        // 64 KiB + 8 times the smallest.
        size = static_cast<size_t>(std::min<uint64_t>(first_slab + 7 * smallest_, largest_slab));
    }
    seen_ = seen_bytes_ = 0;
    smallest_ = UINT64_MAX;
    size = std::min(size, largest_);
    size &= ~(std::bit_floor(size) / 8 - 1);  // a size that the pool does not round up
    return last_ = size;
}

}  // namespace shf
