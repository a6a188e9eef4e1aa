// Images: JPEG (libjpeg-turbo), PNG (libpng) and WebP (libwebp), recognized by their first
// bytes, regardless of the name of the field.
#pragma once

#include "decode/decoder.h"
#include "image/image_options.h"

#include <cstdint>
#include <memory>

namespace shf {

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

}  // namespace shf
