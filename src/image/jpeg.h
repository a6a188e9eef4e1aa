// JPEG, through libjpeg-turbo.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"
#include "image/image_scratch.h"

#include <cstdint>
#include <span>

namespace shf {

ImageHeader read_jpeg_header(std::span<const uint8_t> file, bool orient);

// Reduces by this factor while decoding: 1, 2, 4 or 8. The largest one that leaves at least
// `width` x `height` of a part `from_width` x `from_height`, as draft() of Pillow has it. The
// factors in between (7/8, 6/8, ...) are left out: they have no SIMD code and take up to twice the
// time of the full size.
uint32_t jpeg_reduction(uint64_t from_width, uint64_t from_height, uint64_t width, uint64_t height);

// Decodes to `to`: 8 bit, 1, 3 or 4 channels, of the header's size. CMYK and YCCK become colours
// as Pillow makes them. What libjpeg-turbo warns of is an error: it continues with grey or shifted
// blocks then.
void decode_jpeg(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);

// Decodes the part `wanted` of the image that has the header's size divided by `reduction`, rounded
// up, or some more around it, to `buffer`. `to` says with how many channels, and gets the rest; the
// part that it has comes back. Its pixels are those of the whole image. Blocks beside the part are
// not transformed, and lines below it are not read: damage in these is no error, but a file
// without its end is.
CropBox decode_jpeg_part(std::span<const uint8_t> file, const ImageHeader& header,
                         uint32_t reduction, const CropBox& wanted, Pixels& to,
                         PixelBuffer& buffer);

}  // namespace shf
