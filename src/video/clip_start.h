// When the frames that are taken of a video begin, for a sound that is cut to them.
#pragma once

#include "video/video_options.h"

#include <cstdint>
#include <span>

namespace shf {

// When the first frame that choose_frames() takes is shown, in seconds on the clock of the file,
// as AudioHeader::begins_at has them. `random` is the key of the choices. Borrows `file`, and
// decodes nothing of it. Throws Error: FORMAT, UNSUPPORTED as VideoFile does, and where the video
// has too few frames.
double clip_start(std::span<const uint8_t> file, const VideoOptions& options, uint64_t random);

}  // namespace shf
