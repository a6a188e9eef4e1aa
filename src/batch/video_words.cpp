#include "batch/video_words.h"

#include "batch/words.h"
#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shf {

namespace {

using Pick = VideoOptions::Pick;

constexpr uint64_t most_frames = 1'000'000;
constexpr const char* frames_of_video_help = "frames=16: that many, in the middles of equal parts";
constexpr const char* clip_help =
    "clip=16 (frames of the middle), clip=start:16 or clip=random:16; stride=2 takes every second "
    "one";

}  // namespace

void VideoWords::refuse(size_t at, const std::string& cause, const std::string& help) const {
    refuse_text("decode", text_, at, cause, help);
}

void VideoWords::once(size_t& given, size_t at, const char* what) const {
    if (given != none)
        refuse(at, std::string("a second ") + what + " for a video", "each of them once");
    given = at;
}

bool VideoWords::take(size_t at, std::string_view word) {
    const auto [name, value, value_at] = split_word(at, word);
    if (word == "repeat") {
        once(repeat_, at, "repeat");
        video_.repeat = true;
    } else if (name == "frames") {
        once(frames_, at, "number of frames");
        video_.pick = Pick::uniform;
        video_.count = number_of_frames(value_at, value, frames_of_video_help);
    } else if (name == "clip") {
        once(clip_, at, "clip");
        take_clip(value_at, value);
    } else if (name == "stride") {
        once(stride_, at, "stride");
        video_.stride = number_of_frames(value_at, value, clip_help);
    } else if (name == "rate") {
        once(rate_, at, "rate");
        take_rate(value_at, value);
    } else {
        return false;
    }
    return true;
}

void VideoWords::end() const {
    if (frames_ != none && clip_ != none)
        refuse(std::max(frames_, clip_), "frames of all of a video, or a clip of it", clip_help);
    if (stride_ != none && clip_ == none)
        refuse(stride_, "nothing that this belongs to", clip_help);
    if (repeat_ != none && frames_ == none && clip_ == none)
        refuse(repeat_, "nothing that this belongs to", "frames=16/repeat or clip=16/repeat");
}

uint64_t VideoWords::number_of_frames(size_t at, std::string_view value, const char* help) const {
    uint64_t number = 0;
    const char* const stop = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), stop, number);
    if (error != std::errc() || end != stop || number < 1 || number > most_frames)
        refuse(at, "not a number of frames from 1 to " + std::to_string(most_frames), help);
    return number;
}

void VideoWords::take_clip(size_t at, std::string_view value) {
    video_.pick = Pick::middle;
    for (const auto& [word, pick] :
         {std::pair("start:", Pick::start), std::pair("random:", Pick::random)}) {
        if (!value.starts_with(word)) continue;
        const size_t size = std::string_view(word).size();
        value.remove_prefix(size);
        at += size;
        video_.pick = pick;
        break;
    }
    video_.count = number_of_frames(at, value, clip_help);
}

void VideoWords::take_rate(size_t at, std::string_view value) {
    static constexpr const char* help = "rate=8 or rate=0.5: frames a second";
    constexpr double milli = 1000, highest = 1000;
    double rate = 0;
    const char* const stop = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), stop, rate);
    if (error != std::errc() || end != stop || !(rate >= 1 / milli) || rate > highest)
        refuse(at, "not a rate from 0.001 to 1000", help);
    video_.rate_milli = static_cast<uint64_t>(std::llround(rate * milli));
}

}  // namespace shf
