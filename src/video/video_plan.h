// Which frames of a video are taken, by their times.
#pragma once

#include "video/video_options.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shf {

// When the frames of a video are shown.
struct VideoTimes {
    std::vector<int64_t> at;  // ascending, at least one, in units of `unit_count / unit_parts` s
    int64_t end = 0;          // of the last one, above it
    int64_t unit_count = 1, unit_parts = 1;  // both above 0

    // After the first frame.
    [[nodiscard]] double seconds(uint64_t frame) const {
        return in_seconds(static_cast<__int128>(at[frame]) - at[0]);
    }
    // When the first frame is shown, on the clock of the file.
    [[nodiscard]] double begins_at() const { return in_seconds(at[0]); }

  private:
    [[nodiscard]] double in_seconds(__int128 units) const {
        return static_cast<double>(units) * static_cast<double>(unit_count) /
               static_cast<double>(unit_parts);
    }
};

// How many frames come out of every video; nothing where that depends on its length.
inline std::optional<uint64_t> fixed_frames(const VideoOptions& options) {
    if (options.pick == VideoOptions::Pick::all) return std::nullopt;
    return options.count;
}

// How many come out of this one. Throws Error(FORMAT) where it has too few.
uint64_t count_frames(const VideoTimes& times, const VideoOptions& options);

// The numbers of the frames that come out, in order of time, as many as count_frames() says. With
// M frames to choose from, `uniform` takes number floor((2 i + 1) M / (2 N)) for i from 0 to N - 1.
// With a rate these M are, for k = 0, 1, ..., the last ones at or before k / rate seconds after the
// first frame, as long as that is before the end. `random` is the key of the choices.
std::vector<uint64_t> choose_frames(const VideoTimes& times, const VideoOptions& options,
                                    uint64_t random);

}  // namespace shf
