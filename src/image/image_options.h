// What becomes of an image: its mode, sizes, crops and flips.
#pragma once

#include <cstdint>

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

}  // namespace shf
