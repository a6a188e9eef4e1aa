// GIF, through giflib: the first frame.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <span>

namespace shf {

ImageHeader read_gif_header(std::span<const uint8_t> file, bool orient);

// Decodes the first frame to `to`, of the header's size and with 3 or 4 channels of 8 bits. Beside
// the frame is its transparent colour, or else the first one of its palette. Colours that the
// palette does not have are black. What comes after the frame is not decoded, but a file that ends
// before its end mark is an error.
void decode_gif(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

// NULL when giflib is not there.
const char* gif_version() noexcept;

}  // namespace shf
