// The inner loops of resampling 8-bit samples: as any compiler makes them, and with AVX2. Both give
// the same bytes.
#pragma once

#include "image/resample.h"

#include <cstddef>
#include <cstdint>

namespace shf {

// Fixed point of Pillow's Resample.c: 8 bits of sample, and 2 so that sums of weights fit.
inline constexpr int weight_bits = 32 - 8 - 2;
// For 16-bit multiplications a weight is high * 2^low_bits + low.
inline constexpr int low_bits = 11;

// The high and the low parts of two weights side by side.
constexpr int32_t pair_high(int32_t first, int32_t second) {
    return (first >> low_bits & 0xffff) | (second >> low_bits) * (1 << 16);
}
constexpr int32_t pair_low(int32_t first, int32_t second) {
    constexpr int32_t mask = (1 << low_bits) - 1;
    return (first & mask) | (second & mask) << 16;
}

struct ResampleKernels {
    // Two rows at once, out0 and out1 from in0 and in1. Reads at most 16 bytes after the rows, and
    // writes one byte after them.
    using Rows = void (*)(const uint8_t* in0, const uint8_t* in1, const FilterTable& table,
                          uint8_t* out0, uint8_t* out1);
    // One row of `size` bytes from `count` rows. `weights` has an even number of them.
    using Columns = void (*)(const uint8_t* const* in, uint32_t count, const int32_t* weights,
                             uint8_t* out, size_t size);

    Rows rows[5];  // by channels: 1, 3, 4
    Columns columns;
};

// The fastest ones for this machine, and those for every machine.
const ResampleKernels& resample_kernels();
const ResampleKernels& portable_resample_kernels();

}  // namespace shf
