// Which frames of a sound are decoded, and which of the result are wanted.
#pragma once

#include "audio/audio_file.h"
#include "audio/audio_options.h"

#include <cstdint>

namespace shf {

struct AudioPlan {
    uint32_t rate = 0;     // that comes out
    uint64_t silence = 0;  // zeros before a sound that begins later than its clip
    uint64_t begin = 0;    // the first frame that comes out of the whole sound, at that rate
    uint64_t frames = 0;   // that come out, without silence and padding: 0 when the sound is over
    uint64_t padded = 0;   // with them
    // What is decoded: more than the result needs when it is resampled, whose filter looks at what
    // is around a frame.
    uint64_t source_begin = 0, source_frames = 0;
    uint64_t resampled = 0;  // what becomes of it, at the rate that comes out
    uint64_t skipped = 0;    // of that, before the result
};

// How many frames `frames` at the rate `from` become at the rate `to`: rounded to the nearest.
// Throws Error(LIMIT) above 2^62.
uint64_t resampled_frames(uint64_t frames, uint32_t from, uint32_t to);

// `random` is the key of the sample's random choices; `clip_start`, on the clock of
// header.begins_at, is for Crop::clip. Throws Error: FORMAT (nothing is left at the new rate, or of
// the sound when its clip begins), LIMIT.
AudioPlan plan_audio(const AudioHeader& header, const AudioOptions& options, uint64_t random,
                     double clip_start = 0);

}  // namespace shf
