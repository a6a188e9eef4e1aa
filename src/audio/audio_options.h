// What becomes of a sound: its numbers, channels, rate, and how long a part of it.
#pragma once

#include <cstdint>

namespace shf {

struct AudioOptions {
    enum class Numbers : uint8_t { float32, int16 };
    enum class Crop : uint8_t {
        none,
        middle,
        start,
        random,
        clip,  // from the moment at which the first chosen frame of its video is shown
    };

    // Of the part that Crop takes, at the rate that comes out.
    struct Length {
        uint64_t count = 0;
        uint64_t per_second = 0;  // 0: `count` is of frames; 1000000: of microseconds
        bool operator==(const Length&) const = default;
    };

    Numbers numbers = Numbers::float32;  // float32: as a rule in -1..1
    bool channels_first = false;         // with mono there is no dimension of channels either way
    bool mono = false;                   // the mean of the channels
    uint32_t rate = 0;                   // frames a second; 0: as it is stored
    Crop crop = Crop::none;
    Length length;
    bool pad = false;  // zeros up to `length` behind a sound that ends earlier

    bool operator==(const AudioOptions&) const = default;
};

}  // namespace shf
