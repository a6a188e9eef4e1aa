// The two inner loops of resampling, for both depths. Written once with vectors of eight numbers;
// resample.cpp compiles them for the machine as it is and for AVX2.
#pragma once

#include "decode/resample.h"

#include <cstdint>
#include <cstring>

namespace shf {

// Fixed point of Pillow's Resample.c: 8 bits of sample, and 2 so that sums of rounded weights fit.
inline constexpr int weight_bits = 32 - 8 - 2;

using Int8 = int32_t __attribute__((vector_size(32)));
using Byte8 = uint8_t __attribute__((vector_size(8)));

inline uint8_t to_byte(int32_t sum) {
    // Weights that were rounded up may sum to a little more than one.
    const int32_t value = sum >> weight_bits;
    return static_cast<uint8_t>(value > 255 ? 255 : value);
}

// Two rows at once: out0 and out1 from in0 and in1. Reads up to 4 - Channels bytes too many.
template <size_t Channels>
[[gnu::always_inline]] inline void resample_rows(const uint8_t* in0, const uint8_t* in1,
                                                 const FilterTable& table, uint8_t* out0,
                                                 uint8_t* out1) {
    const int32_t* weights = table.weights.data();
    for (const FilterTable::Taps& taps : table.taps) {
        const uint8_t* from0 = in0 + taps.first * Channels;
        const uint8_t* from1 = in1 + taps.first * Channels;
        if constexpr (Channels == 1) {
            int32_t sum0 = 1 << (weight_bits - 1), sum1 = sum0;
            for (uint32_t i = 0; i < taps.count; ++i) {
                sum0 += from0[i] * weights[i];
                sum1 += from1[i] * weights[i];
            }
            *out0 = to_byte(sum0);
            *out1 = to_byte(sum1);
        } else {
            Int8 sum = Int8{} + (1 << (weight_bits - 1));
            for (uint32_t i = 0; i < taps.count; ++i) {
                Byte8 bytes;
                uint8_t both[8];
                std::memcpy(both, from0 + i * Channels, 4);
                std::memcpy(both + 4, from1 + i * Channels, 4);
                std::memcpy(&bytes, both, 8);
                sum += __builtin_convertvector(bytes, Int8) * weights[i];
            }
            for (size_t c = 0; c < Channels; ++c) {
                out0[c] = to_byte(sum[c]);
                out1[c] = to_byte(sum[c + 4]);
            }
        }
        out0 += Channels;
        out1 += Channels;
        weights += table.most;
    }
}

// One row of `size` bytes from `count` rows.
[[gnu::always_inline]] inline void resample_columns(const uint8_t* const* in, uint32_t count,
                                                    const int32_t* weights, uint8_t* out,
                                                    size_t size) {
    size_t x = 0;
    for (; x + 32 <= size; x += 32) {
        Int8 sum[4];
        for (Int8& part : sum) part = Int8{} + (1 << (weight_bits - 1));
        for (uint32_t i = 0; i < count; ++i) {
            Byte8 bytes[4];
            std::memcpy(bytes, in[i] + x, 32);
            for (size_t part = 0; part < 4; ++part)
                sum[part] += __builtin_convertvector(bytes[part], Int8) * weights[i];
        }
        for (size_t part = 0; part < 4; ++part)
            for (size_t c = 0; c < 8; ++c) out[x + part * 8 + c] = to_byte(sum[part][c]);
    }
    for (; x < size; ++x) {
        int32_t sum = 1 << (weight_bits - 1);
        for (uint32_t i = 0; i < count; ++i) sum += in[i][x] * weights[i];
        out[x] = to_byte(sum);
    }
}

}  // namespace shf
