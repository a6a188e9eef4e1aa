// JPEG, through the TurboJPEG API of libjpeg-turbo.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstdint>
#include <memory>
#include <span>

namespace shf {

// A decoder of libjpeg-turbo, which is dear to make. One thread at a time.
struct JpegClose {
    void operator()(void* handle) const noexcept;
};
using JpegHandle = std::unique_ptr<void, JpegClose>;

ImageHeader read_jpeg_header(std::span<const uint8_t> file, bool orient);

// Reduces by this factor while decoding: 1, 2, 4 or 8. The largest one that leaves at least
// `width` x `height` (of the image as it is stored), as draft() of Pillow has it. The factors in
// between (7/8, 6/8, ...) are left out: they have no SIMD code and take up to twice the time of
// the full size.
uint32_t jpeg_reduction(const ImageHeader& header, uint64_t width, uint64_t height);

// Decodes to `to`: 8 bit, 1, 3 or 4 channels; its size is that of the header divided by
// `reduction`, rounded up. What libjpeg-turbo warns of is an error: it continues with grey or
// shifted blocks then. Makes the handle when there is none.
void decode_jpeg(std::span<const uint8_t> file, const ImageHeader& header, uint32_t reduction,
                 const Pixels& to, JpegHandle& handle);

}  // namespace shf
