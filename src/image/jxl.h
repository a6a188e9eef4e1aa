// JPEG XL, through libjxl.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <span>

namespace shf {

// Throws UNSUPPORTED for animations, and for colours that are neither grey nor red, green and blue.
// Images of more than 8 bits, and of floating point, have 16.
ImageHeader read_jxl_header(std::span<const uint8_t> file, bool orient);

// Decodes to `to`, of the header's size: 1 (of grey images), 3 or 4 channels of 8 or, of such
// images, 16 bit, on one thread. Alpha that the colours were multiplied with is divided out.
void decode_jxl(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

// NULL when libjxl is not there.
const char* jxl_version() noexcept;

}  // namespace shf
