// Sounds: WAV, FLAC, MP3 and Ogg Opus, recognized by their first bytes, regardless of the
// name of the field.
#pragma once

#include "audio/audio_options.h"
#include "decode/decoder.h"
#include "image/image_options.h"
#include "video/video_options.h"

#include <cstdint>
#include <memory>

namespace shf {

// The steps are: decode the part that is wanted; the mean of the channels; another rate; zeros
// behind what is too short; and the numbers that come out. An int16 is the nearest to 32768 times
// the float32, or the largest or smallest there is.
//
// A sound that ends early, or has damage that its decoder sees in the part that is decoded, is an
// error. Neither what is decoded (as float32) nor what comes out may have more than `max_decoded`
// bytes. `video` and `image` are those of the video whose clip the sound is cut to, in the same
// field, for AudioOptions::Crop::clip. Throws Error(USAGE) for options that contradict each other.
std::unique_ptr<Decoder> audio_decoder(const AudioOptions& options, const VideoOptions& video,
                                       const ImageOptions& image, uint64_t max_decoded);

}  // namespace shf
