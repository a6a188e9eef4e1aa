// The sets of operations RandAugment (Cubuk et al., arXiv:1909.13719) and TrivialAugment Wide
// (Mueller and Hutter, arXiv:2103.10158), as transforms v2 of torchvision has them for images of 8
// bits.
#pragma once

#include "image/image_options.h"
#include "image/image_pixels.h"
#include "image/image_scratch.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shf {

// Where the pixel (x, y) of an image lies in another one: a row for each axis, factors of x and y
// and what is added. Whole numbers are borders of pixels.
struct Affine {
    double x[3] = {1, 0, 0}, y[3] = {0, 1, 0};

    // What `next` makes of the result.
    [[nodiscard]] Affine then(const Affine& next) const;
};

struct AugmentChoices {
    // In the order of torchvision's table.
    enum class Operation : uint8_t {
        identity,
        shear_x,
        shear_y,
        translate_x,
        translate_y,
        rotate,
        brightness,
        color,
        contrast,
        sharpness,
        posterize,
        solarize,
        auto_contrast,
        equalize,
    };
    struct Step {
        Operation operation = Operation::identity;
        double magnitude = 0;  // in the unit of torchvision's; 0 where there is none
    };
    std::array<Step, ImageOptions::Augment::most_operations> steps{};
    size_t count = 0;
};

// As torchvision names it, such as "ShearX".
const char* operation_name(AugmentChoices::Operation operation);

// The operations for an image of this size. They depend on `random`, and no more.
AugmentChoices draw_augment(const ImageOptions::Augment& augment, uint32_t width, uint32_t height,
                            uint64_t random);

// Where an operation moves the pixels of an image of this size.
Affine movement(const AugmentChoices::Step& step, uint32_t width, uint32_t height);

// Does them in place. Three channels of 8 bits; `fill` is the level beside the image where it is
// moved, and `spare` memory that holds nothing.
void augment(const Pixels& pixels, const AugmentChoices& choices, bool bilinear, uint8_t fill,
             PixelBuffer& spare);
// Likewise those that move pixels, each to the nearest place, and no others. Any pixels; `fill` is
// each byte of those beside the image.
void augment_mask(const Pixels& pixels, const AugmentChoices& choices, uint8_t fill,
                  PixelBuffer& spare);

}  // namespace shf
