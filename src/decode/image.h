// Images: JPEG (libjpeg-turbo), PNG (libpng) and WebP (libwebp), told apart by their first bytes,
// whatever the name of the field says.
#pragma once

#include "decode/decoder.h"

#include <cstdint>
#include <memory>

namespace shf {

struct ImageOptions {
    // Of the pixels that come out. 8 and 16 bit are integers; float32 is in 0..1.
    enum class Mode : uint8_t { rgb8, l8, rgba8, rgb16, l16, rgb, l };
    enum class Resize : uint8_t {
        none,
        shorter,  // the shorter side becomes `width`, the other one follows
        exact,    // width x height, whatever the shape was
        fit,      // as large as goes into width x height, with its shape
    };
    enum class Crop : uint8_t { none, centre, random };
    enum class Flip : uint8_t { none, always, random };  // left and right

    Mode mode = Mode::rgb8;
    bool channels_first = false;  // chw; grey images have no channel dimension either way
    Resize resize = Resize::none;
    uint32_t width = 0, height = 0;
    Crop crop = Crop::none;
    uint32_t crop_width = 0, crop_height = 0;
    Flip flip = Flip::none;
    bool orient = false;  // turn the image as its EXIF orientation says

    bool operator==(const ImageOptions&) const = default;
};

// The steps are: decode, orient, resize, crop, flip, convert. No image may have more than
// `max_decoded` bytes, neither as it is stored (after decoding) nor as it comes out.
std::unique_ptr<Decoder> image_decoder(const ImageOptions& options, uint64_t max_decoded);

}  // namespace shf
