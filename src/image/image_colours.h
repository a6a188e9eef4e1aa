// Changes of colour at random, as transforms v2 of torchvision has them for images of 8 bits.
#pragma once

#include "image/image_options.h"
#include "image/image_pixels.h"
#include "image/image_scratch.h"
#include "image/resample.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shf {

// What is done to one image, drawn from the ranges and chances of the options.
struct ColourChoices {
    enum class Kind : uint8_t { brightness, contrast, saturation, hue };
    struct Change {
        Kind kind;
        float factor;
    };
    std::array<Change, 4> changes{};
    size_t count = 0;  // of the changes that are made, in their order
    bool grayscale = false, solarize = false;
    double sigma = 0;  // of the blur; 0: none
};

// All choices depend on `random` alone.
ColourChoices draw_colours(const ImageOptions::Colours& colours, uint64_t random);

// Does one of them. Three channels of 8 bits.
void change_colour(const Pixels& pixels, const ColourChoices::Change& change);

// Brightness, contrast, saturation and hue in the order that was drawn (ColorJitter), then grey
// (RandomGrayscale), blurred by `kernel` pixels (GaussianBlur) and inverted above the middle
// (RandomSolarize at 128). Three channels of 8 bits, 16 bytes more of which are readable. Returns
// where the image is then: there, or in `blurred`.
Pixels change_colours(const Pixels& pixels, const ColourChoices& choices, uint32_t kernel,
                      PixelBuffer& blurred, ResampleScratch& scratch);

// One channel of 8 bits becomes three equal ones; `to` has the same size.
void make_coloured(const Pixels& grey, const Pixels& to);

}  // namespace shf
