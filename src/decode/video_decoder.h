// Videos: MP4, Matroska, WebM and AVI, recognized by their first bytes, regardless of the name of
// the field.
#pragma once

#include "decode/decoder.h"
#include "image/image_options.h"
#include "video/video_options.h"

#include <cstdint>
#include <memory>

namespace shf {

// The frames that are wanted, in order of time. Each becomes what an image with these options does,
// all with the same random choices; the first dimension is of frames. A video is turned as its
// container says.
//
// Damage that the decoder sees in what is decoded for them is an error. Neither a frame as it is
// stored and kept by its decoder, nor what comes out, may have more than `max_decoded` bytes.
// Throws Error(USAGE) for options that contradict each other.
std::unique_ptr<Decoder> video_decoder(const VideoOptions& options, const ImageOptions& image,
                                       uint64_t max_decoded);

}  // namespace shf
