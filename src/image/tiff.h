// TIFF, through libtiff: the first image of a file.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <span>

namespace shf {

// Grey, colour, palettes, CMYK, and YCbCr that is compressed as JPEG, with whole numbers of 1, 2,
// 4, 8 or 16 bits; in strips or tiles, of all samples or of one each. Throws UNSUPPORTED for other
// ones.
ImageHeader read_tiff_header(std::span<const uint8_t> file, bool orient);

// Decodes to `to`, of the header's size: 1 (of grey images), 3 or 4 channels of 8 or, of 16-bit
// images, 16 bit; 16 bits become 8 as value / 257, rounded. Alpha that the colours were multiplied
// with is divided out, alpha that is not asked for is left out, and alpha that is not there is
// opaque. What libtiff only warns of while it decodes is an error, too.
void decode_tiff(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

// NULL when libtiff is not there.
const char* tiff_version() noexcept;

}  // namespace shf
