// Changes of colour at random, as transforms v2 of torchvision has them for images of 8 bits.
#pragma once

#include "image/image_options.h"
#include "image/image_pixels.h"

#include <cstdint>

namespace shf {

// Brightness, contrast, saturation and hue in an order at random (ColorJitter), then grey
// (RandomGrayscale), then inverted above the middle (RandomSolarize at 128). All choices depend on
// `random` alone. Three channels of 8 bits.
void change_colours(const Pixels& pixels, const ImageOptions::Colours& colours, uint64_t random);

// One channel of 8 bits becomes three equal ones; `to` has the same size.
void make_coloured(const Pixels& grey, const Pixels& to);

}  // namespace shf
