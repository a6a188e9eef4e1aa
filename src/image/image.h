// Images: JPEG (libjpeg-turbo), PNG (libpng) and WebP (libwebp), recognized by their first
// bytes, regardless of the name of the field.
#pragma once

#include "decode/decoder.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace shf {

struct ImageOptions {
    // Of the pixels that come out. 8 and 16 bit are integers; float32 is in 0..1.
    enum class Mode : uint8_t { rgb8, l8, rgba8, rgb16, l16, rgb, l };
    enum class Resize : uint8_t {
        none,
        shorter,  // the shorter side becomes `width`, the other one follows
        exact,    // width x height, regardless of the shape
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
    // In which order: crop before resize, and flip before either of them.
    bool crop_first = false;
    bool flip_before_resize = false, flip_before_crop = false;
    bool orient = false;  // turn the image as its EXIF orientation says

    bool operator==(const ImageOptions&) const = default;
};

// The steps are: decode, make grey or drop alpha as the mode says, orient; resize, crop and flip in
// the order of the options; and convert to the numbers of the mode. 16 bits become 8 as value /
// 257, rounded, in the first step; 8 bits become 16 as value * 257. Crops and flips at random
// depend on the sample's key and the image's size alone, so that an image and its mask agree. A
// JPEG that is to become smaller as a whole is reduced while it is decoded, by at most what leaves
// it as large as it is to be.
//
// No image may have more than `max_decoded` bytes, neither as it is stored (after decoding) nor as
// it comes out, and resizing takes no more than that besides, nor do the coefficients of a JPEG
// that come in several scans (2 bytes each; as a rule 3 to 6 for a pixel). An image without its
// end, or with damage that its decoder sees, is an error; bytes after its end are not looked at.
// Throws Error(USAGE) for a resize or a crop to 0 pixels. `out` of decode() must be aligned for the
// numbers of the mode.
std::unique_ptr<Decoder> image_decoder(const ImageOptions& options, uint64_t max_decoded);

// The library that decodes "jpeg", "png" or "webp", such as "libpng 1.6.39"; NULL for a format that
// is unknown or was left out of the build.
const char* image_codec_version(std::string_view format);

}  // namespace shf
