// The formats of images, and the libraries that decode them.
#pragma once

#include "image/image_header.h"
#include "image/image_pixels.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shf {

struct ImageCodec {
    std::string_view feature;  // as shf_feature() has it
    const char* format;        // for messages
    // Whether a file that begins so is of this format. `start` is signature_size bytes, or the
    // whole file.
    bool (*begins)(std::string_view start);
    // Both throw Error: FORMAT, UNSUPPORTED, LIMIT.
    ImageHeader (*read_header)(std::span<const uint8_t> file, bool orient);
    // All of it to `to`, of the header's size, with 1 channel (of grey images), 3 or 4; of 8 bits
    // or, of images with 16, of 16. Other errors than those: std::bad_alloc.
    void (*decode)(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to);
    // Such as "libpng 1.6.39"; NULL when it was left out of the build, or this system has none.
    const char* (*version)();
};

// How many bytes tell a format.
inline constexpr size_t signature_size = 64;

// One for each format, in the order of ImageFormat.
std::span<const ImageCodec> image_codecs();

inline const ImageCodec& codec_of(const ImageHeader& header) {
    return image_codecs()[static_cast<size_t>(header.format)];
}

// The library that decodes "jpeg", "png", ...; NULL for a format that is unknown or that cannot be
// decoded.
const char* image_codec_version(std::string_view format);

}  // namespace shf
