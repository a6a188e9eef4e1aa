#include "batch/audio_words.h"

#include "batch/words.h"
#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace shf {

namespace {

constexpr const char* crop_help =
    "crop=5s (the middle), crop=start:5s, crop=random:5s, or crop=clip:5s of a video; a length is "
    "5s, 250ms or 80000 (frames)";
constexpr const char* rate_help = "rate=N, frames a second, for example rate=16000";

template <typename Number>
bool read_number(std::string_view text, Number& number) {
    const char* const stop = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), stop, number);
    return error == std::errc() && end == stop;
}

// "80000" frames, "5s", "2.5s", "250ms".
bool read_length(std::string_view text, AudioOptions::Length& length) {
    if (read_number(text, length.count)) {
        length.per_second = 0;
        return length.count > 0;
    }
    constexpr uint64_t microseconds = 1'000'000;
    double unit = 0;
    if (text.ends_with("ms")) {
        unit = 1000;
        text.remove_suffix(2);
    } else if (text.ends_with('s')) {
        unit = microseconds;
        text.remove_suffix(1);
    } else {
        return false;
    }
    double value = 0;
    constexpr double longest = 1e9 * microseconds;  // 30 years
    if (!read_number(text, value) || !(value * unit >= 1) || value * unit > longest) return false;
    length = {static_cast<uint64_t>(std::llround(value * unit)), microseconds};
    return true;
}

}  // namespace

void AudioWords::refuse(size_t at, const std::string& cause, const std::string& help) const {
    refuse_text("decode", text_, at, cause, help);
}

void AudioWords::once(bool& given, size_t at, const char* what) const {
    if (std::exchange(given, true))
        refuse(at, std::string("a second ") + what + " for a sound", "each of them once");
}

void AudioWords::take(size_t at, std::string_view word) {
    const auto [name, value, value_at] = split_word(at, word);
    if (word == "float32" || word == "int16") {
        once(has_numbers_, at, "kind of numbers");
        audio_.numbers =
            word == "int16" ? AudioOptions::Numbers::int16 : AudioOptions::Numbers::float32;
    } else if (word == "fc" || word == "cf") {
        once(has_layout_, at, "layout");
        audio_.channels_first = word == "cf";
    } else if (word == "mono") {
        once(audio_.mono, at, "mono");
    } else if (word == "pad") {
        once(audio_.pad, at, "pad");
    } else if (name == "rate") {
        once(has_rate_, at, "rate");
        take_rate(value_at, value);
    } else if (name == "crop") {
        once(has_crop_, at, "crop");
        take_crop(value_at, value);
    } else {
        refuse(at, "unknown word \"" + escape(word) + "\" for a sound",
               "one of float32, int16, fc, cf, mono, rate=, crop=, pad");
    }
}

void AudioWords::end(size_t at) const {
    if (audio_.pad && !has_crop_)
        refuse(at, "a sound is padded to the length of its crop, and has none",
               "for example crop=5s/pad");
}

void AudioWords::take_rate(size_t at, std::string_view value) {
    constexpr uint32_t highest = 1'000'000;
    if (!read_number(value, audio_.rate) || audio_.rate < 1 || audio_.rate > highest)
        refuse(at, "not a rate from 1 to 1000000", rate_help);
}

void AudioWords::take_crop(size_t at, std::string_view value) {
    audio_.crop = AudioOptions::Crop::middle;
    for (const auto& [word, crop] : {std::pair("start:", AudioOptions::Crop::start),
                                     std::pair("random:", AudioOptions::Crop::random),
                                     std::pair("clip:", AudioOptions::Crop::clip)}) {
        if (!value.starts_with(word)) continue;
        const size_t size = std::string_view(word).size();
        value.remove_prefix(size);
        at += size;
        audio_.crop = crop;
        break;
    }
    if (!read_length(value, audio_.length)) refuse(at, "not a length of a sound", crop_help);
}

}  // namespace shf
