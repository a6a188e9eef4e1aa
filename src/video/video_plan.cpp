#include "video/video_plan.h"

#include "core/error.h"
#include "core/random.h"

#include <algorithm>
#include <limits>
#include <string>

namespace shf {

namespace {

using Pick = VideoOptions::Pick;
using Wide = __int128;  // times and rates come from files

constexpr uint64_t milli = 1000;

// What frames are chosen from: those of the video, or one for each moment of the rate.
class FrameSequence {
  public:
    FrameSequence(const VideoTimes& times, uint64_t rate_milli)
        : times_(times), rate_milli_(rate_milli), size_(times.at.size()) {
        if (rate_milli == 0) return;
        // Of more than any memory holds it is enough to know that.
        constexpr uint64_t most = uint64_t{1} << 62;
        const Wide parts = Wide{milli} * times.unit_parts;
        const Wide length = (Wide{times.end} - times.at[0]) * times.unit_count;
        const Wide whole = length / parts, rest = length % parts;
        if (whole > static_cast<Wide>(most / rate_milli)) {
            size_ = most;
            return;
        }
        size_ = static_cast<uint64_t>(whole * rate_milli + (rest * rate_milli + parts - 1) / parts);
    }

    [[nodiscard]] uint64_t size() const { return size_; }
    // The number of the frame.
    [[nodiscard]] uint64_t operator[](uint64_t k) const {
        if (rate_milli_ == 0) return k;
        const Wide units = Wide{k} * milli * times_.unit_parts;
        const Wide per_unit = Wide{times_.unit_count} * rate_milli_;
        const Wide since_first = units / per_unit;  // at or before: rounded down
        const auto later = std::partition_point(
            times_.at.begin(), times_.at.end(),
            [&](int64_t at) { return Wide{at} - times_.at[0] <= since_first; });
        return static_cast<uint64_t>(later - times_.at.begin()) - 1;
    }

  private:
    const VideoTimes& times_;
    const uint64_t rate_milli_;
    uint64_t size_;
};

// How many frames a clip reaches over.
uint64_t span_of(const VideoOptions& options) {
    return (options.count - 1) * options.stride + 1;
}

void check_enough(uint64_t there, const VideoOptions& options) {
    if (options.pick == Pick::all || options.repeat) return;
    const uint64_t needed = options.pick == Pick::uniform ? options.count : span_of(options);
    if (there >= needed) return;
    throw Error(SHF_E_FORMAT,
                "a video of " + plural(there, "frame") +
                    (options.rate_milli == 0 ? "" : " at this rate") + ", " +
                    std::to_string(needed) + " are needed",
                "ask for fewer, allow that frames come again (repeat), or skip the sample with "
                "on_error=skip_sample");
}

}  // namespace

uint64_t count_frames(const VideoTimes& times, const VideoOptions& options) {
    const uint64_t there = FrameSequence(times, options.rate_milli).size();
    check_enough(there, options);
    return fixed_frames(options).value_or(there);
}

std::vector<uint64_t> choose_frames(const VideoTimes& times, const VideoOptions& options,
                                    uint64_t random) {
    const FrameSequence sequence(times, options.rate_milli);
    const uint64_t there = sequence.size();
    check_enough(there, options);
    std::vector<uint64_t> chosen(fixed_frames(options).value_or(there));
    if (options.pick == Pick::all || options.pick == Pick::uniform) {
        for (uint64_t i = 0; i < chosen.size(); ++i)
            chosen[i] = options.pick == Pick::all
                            ? sequence[i]
                            : sequence[static_cast<uint64_t>(Wide{2 * i + 1} * there /
                                                             (2 * options.count))];
        return chosen;
    }
    const uint64_t spare = there - std::min(there, span_of(options));
    uint64_t begin = 0;
    if (options.pick == Pick::middle) begin = spare / 2;
    if (options.pick == Pick::random) begin = Random(Random::video_clip, {random}).below(spare + 1);
    for (uint64_t i = 0; i < chosen.size(); ++i)
        chosen[i] = sequence[std::min(begin + i * options.stride, there - 1)];
    return chosen;
}

}  // namespace shf
