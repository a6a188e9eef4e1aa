// AVIF, through libavif.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <span>

namespace shf {

// Throws UNSUPPORTED for sequences of images. Images of 10 and 12 bits have 16.
ImageHeader read_avif_header(std::span<const uint8_t> file, bool orient);

// Decodes to `to`, of the header's size: 1 (of grey images), 3 or 4 channels of 8 or, of such
// images, 16 bit, on one thread. Alpha that the colours were multiplied with is divided out.
void decode_avif(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

// NULL when libavif is not there.
const char* avif_version() noexcept;

}  // namespace shf
