// Fuzz target of the image decoder: any file, small limits; whatever is measured is decoded, and
// twice gives the same bytes.
//
// The first two bytes choose the options, so that a corpus file says how it is read: the first one
// mod 7 the mode, and of its quotient bits 0 to 2 the order of the steps, bit 3 a crop of random
// area, bit 4 padding and 16-bit floating point, bit 5 changes of colour; of the second one bit 0
// the layout or the view, bits 1 and 2 how to resize, bits 3 and 4 how to crop, or the filter of a
// crop of random area, bit 5 a flip at random, bit 6 the orientation, bit 7 larger sizes.
#include "decode/image_decoder.h"
#include "decoded_twice.h"

#include <cstdint>

namespace {

using shf::ImageOptions;

ImageOptions options_of(uint8_t mode, uint8_t choice) {
    const uint32_t side = (choice & 128) != 0 ? 40 : 5;
    ImageOptions options;
    options.mode = static_cast<ImageOptions::Mode>(mode % 7);
    options.channels_first = (choice & 1) != 0;
    options.resize = static_cast<ImageOptions::Resize>(choice >> 1 & 3);
    options.width = side;
    options.height = side + 2;
    options.crop = static_cast<ImageOptions::Crop>((choice >> 3 & 3) % 3);
    options.crop_width = side - 1;
    options.crop_height = side - 2;
    options.flip = (choice & 32) != 0 ? ImageOptions::Flip::random : ImageOptions::Flip::none;
    options.orient = (choice & 64) != 0;
    const int order = mode / 7;
    options.crop_first = (order & 1) != 0;
    options.flip_before_resize = (order & 2) != 0;
    options.flip_before_crop = (order & 4) != 0;
    if ((order & 8) != 0) {
        options.crop = ImageOptions::Crop::area;
        options.crop_first = true;
        options.resize = ImageOptions::Resize::exact;
        options.filter = static_cast<ImageOptions::Filter>((choice >> 3 & 3) + (choice >> 1 & 2));
        options.normalize = {{0.5, 0.25, 0.1}, {0.5, 3, 1e-3}};
    }
    if ((order & 16) != 0) {
        options.pad = (choice & 32) != 0 ? ImageOptions::Pad::sides : ImageOptions::Pad::size;
        options.pad_width = side + 1;
        options.pad_height = 9;
        options.crop_before_pad = (order & 1) != 0;
        options.flip_before_pad = (order & 2) != 0;
        options.precision = (choice & 64) != 0 ? ImageOptions::Precision::float16
                                               : ImageOptions::Precision::bfloat16;
    }
    if ((order & 32) != 0 && (mode % 7 == 0 || mode % 7 == 5)) {
        options.colours = {{0.5, 1.5}, {0.5, 1.5}, {0.5, 1.5}, {-0.5, 0.5}, 0.9,
                           0.5,        0.5,        0.5,        {0.1, 3},    9};
        options.view = choice & 1;
        using Set = ImageOptions::Augment::Set;
        if ((choice & 2) != 0)
            options.augment = {(choice & 4) != 0 ? Set::randaugment : Set::trivialaugment, 3, 20,
                               (choice & 64) != 0};
    } else if ((order & 32) != 0 && mode % 7 < 5) {
        options.mask = true;
        options.filter = ImageOptions::Filter::nearest;
        options.augment = {ImageOptions::Augment::Set::randaugment, 3, 20, false};
    }
    return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) return 0;
    constexpr uint64_t max_decoded = 1 << 20;
    const auto decoder = shf::image_decoder(options_of(data[0], data[1]), max_decoded);
    decode_twice(*decoder, {data + 2, size - 2}, size, max_decoded);
    return 0;
}
