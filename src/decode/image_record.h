// What was done to an image, as text: the rows of the column "__augment__".
#pragma once

#include "image/image_geometry.h"
#include "image/image_options.h"

#include <cstdint>
#include <string>

namespace shf {

// A JSON object with the sizes, the parts, the flip and the matrix of the geometry, and what was
// drawn of colours and operations (docs/decode.md). `random` is the key of the choices of the view.
std::string image_record(const ImageOptions& options, const ImageGeometry& plan, uint64_t random);

}  // namespace shf
