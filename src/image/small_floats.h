// Floating point numbers of 16 bits: what a float becomes, rounded to the nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace shf {

// IEEE 754 binary16.
constexpr uint16_t to_float16(float number) {
    const auto bits = std::bit_cast<uint32_t>(number);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t size = bits & 0x7fffffff;
    constexpr uint32_t infinite = 0x7f800000, smallest_normal = 0x38800000, too_large = 0x477ff000;
    if (size > infinite) return static_cast<uint16_t>(sign | 0x7e00);
    if (size >= too_large) return static_cast<uint16_t>(sign | 0x7c00);
    if (size >= smallest_normal) {
        const uint32_t rounded = size + 0xfff + (size >> 13 & 1);
        return static_cast<uint16_t>(sign | ((rounded - (112U << 23)) >> 13));
    }
    // A multiple of 2^-24, which the addition of 0.5 rounds to.
    const float shifted = std::bit_cast<float>(size) + 0.5F;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F)));
}

// The upper half of a float.
constexpr uint16_t to_bfloat16(float number) {
    const auto bits = std::bit_cast<uint32_t>(number);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace shf
