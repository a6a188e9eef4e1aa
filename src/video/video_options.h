// Which frames of a video are wanted. What becomes of each is in ImageOptions.
#pragma once

#include <cstdint>

namespace shf {

struct VideoOptions {
    enum class Pick : uint8_t {
        all,
        uniform,  // the frames in the middles of `count` equal parts
        start,    // `count` frames one after another, `stride` apart: the first ones,
        middle,   // those in the middle,
        random,   // or any
    };

    Pick pick = Pick::all;
    uint64_t count = 0;  // of frames; unless all are taken
    uint64_t stride = 1;
    // Frames a thousand seconds of what frames are taken from; 0: those that are stored.
    uint64_t rate_milli = 0;
    bool repeat = false;  // frames, where the video has too few

    bool operator==(const VideoOptions&) const = default;
};

}  // namespace shf
