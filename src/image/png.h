// PNG, through libpng.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <span>

namespace shf {

ImageHeader read_png_header(std::span<const uint8_t> file, bool orient);

// Decodes to `to`, of the header's size: 1 (of grey images), 3 or 4 channels of 8 or, of 16-bit
// images, 16 bit. Palettes and few bits are expanded, tRNS becomes alpha; alpha that is not asked
// for is left out, and alpha that is not there is opaque. 16 bits become 8 as value / 257, rounded.
// Indexes that the palette does not have are black. Gamma and colour profiles are not applied.
// Wrong checksums and all else that libpng finds wrong with the pixels are errors.
void decode_png(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

}  // namespace shf
