// WebP, through libwebp. Without that library every call throws UNSUPPORTED.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <span>

namespace shf {

ImageHeader read_webp_header(std::span<const uint8_t> file, bool orient);

// Decodes to `to`, of the header's size: 3 or 4 channels of 8 bit. Alpha that is not asked for is
// left out, alpha that is not there is opaque.
void decode_webp(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

// The library that decodes, "libwebp 1.2.4", or NULL.
const char* webp_version() noexcept;

}  // namespace shf
