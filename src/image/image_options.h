// What becomes of an image: its pixels, sizes, crops and flips.
#pragma once

#include <array>
#include <cstdint>

namespace shf {

struct ImageOptions {
    // Of the pixels that come out. 8 and 16 bit are integers; the others are floating point, in
    // 0..1 unless they are normalised.
    enum class Mode : uint8_t { rgb8, l8, rgba8, rgb16, l16, rgb, l };
    // Of floating point.
    enum class Precision : uint8_t { float32, float16, bfloat16 };
    enum class Resize : uint8_t {
        none,
        shorter,  // the shorter side becomes `width`, the other one follows
        exact,    // width x height, regardless of the shape
        fit,      // as large as goes into width x height, with its shape
    };
    // Those of Pillow; all but `nearest` with antialiasing.
    enum class Filter : uint8_t { nearest, box, bilinear, hamming, bicubic, lanczos };
    enum class Crop : uint8_t {
        none,
        centre,
        random,
        area,  // of a random size and shape, in front of resize: RandomResizedCrop of torchvision
    };
    enum class Flip : uint8_t { none, always, random };  // left and right
    enum class Pad : uint8_t {
        none,
        sides,  // pad_width pixels left and right, pad_height above and below
        size,   // to at least pad_width x pad_height, the image in the middle
    };
    struct Range {
        double least, most;
        bool operator==(const Range&) const = default;
    };
    struct Normalize {
        std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};  // of numbers in 0..1
        bool operator==(const Normalize&) const = default;
    };

    // Ranges of factors, and chances.
    struct Colours {
        Range brightness{1, 1}, contrast{1, 1}, saturation{1, 1};
        Range hue{0, 0};    // of a whole turn
        double jitter = 1;  // of any of these
        double grayscale = 0, blur = 0, solarize = 0;
        Range sigma{0.1, 2};   // of the blur, in pixels
        uint32_t kernel = 23;  // how many pixels it is made of, on each axis
        bool operator==(const Colours&) const = default;
    };

    // RandAugment or TrivialAugment Wide.
    struct Augment {
        enum class Set : uint8_t { none, randaugment, trivialaugment };
        static constexpr uint32_t most_operations = 16;

        Set set = Set::none;
        uint32_t operations = 1;  // one after another, up to most_operations
        uint32_t magnitude = 0;   // of RandAugment, 0 to 30
        bool bilinear = false;    // between pixels that are moved; else the nearest one
        bool operator==(const Augment&) const = default;
    };

    Mode mode = Mode::rgb8;
    Precision precision = Precision::float32;
    bool channels_first = false;  // chw; grey images have no channel dimension either way
    Normalize normalize{};
    Resize resize = Resize::none;
    uint32_t width = 0, height = 0;
    Filter filter = Filter::bilinear;
    bool exact = false;  // no JPEG is reduced while it is decoded
    Crop crop = Crop::none;
    uint32_t crop_width = 0, crop_height = 0;
    // Of a crop of random area: of the image's area, and width / height.
    Range scale{0.08, 1}, ratio{3.0 / 4, 4.0 / 3};
    Flip flip = Flip::none;
    Pad pad = Pad::none;  // after resize
    uint32_t pad_width = 0, pad_height = 0;
    uint8_t fill = 0;  // of each colour: of what is padded, and what `augment` leaves
    // In which order: crop before resize, crop before pad, and flip before either of them.
    bool crop_first = false, crop_before_pad = false;
    bool flip_before_resize = false, flip_before_crop = false, flip_before_pad = false;
    Augment augment{};
    Colours colours{};
    // Levels are labels: `augment` moves them, and changes none.
    bool mask = false;
    uint32_t view = 0;    // which of several: each has random choices of its own
    bool orient = false;  // turn the image as its EXIF orientation says

    bool operator==(const ImageOptions&) const = default;
};

}  // namespace shf
