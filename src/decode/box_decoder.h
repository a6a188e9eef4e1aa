// Boxes in a JSON field, where they lie in the image of their sample.
#pragma once

#include "decode/box_options.h"
#include "decode/decoder.h"
#include "image/image_options.h"

#include <cstdint>
#include <memory>

namespace shf {

// What so many boxes come out as.
ArrayType box_type(const BoxOptions& boxes, uint64_t count);

// The boxes get the geometry that the image gets with `image`, and are clipped to what is left of
// it. Those with a side below one pixel after that are left out, as ClampBoundingBoxes and
// SanitizeBoundingBoxes of torchvision do. Coordinates are those of the image after it was turned;
// whole numbers are borders of pixels.
//
// A box with a negative side, or beside the image, is an error, as are more boxes than have room in
// `max_decoded` bytes. The image is given to measure_beside() and decode_beside(); measure() and
// decode() throw Error(INTERNAL).
std::unique_ptr<Decoder> box_decoder(const BoxOptions& boxes, const ImageOptions& image,
                                     uint64_t max_decoded);

}  // namespace shf
