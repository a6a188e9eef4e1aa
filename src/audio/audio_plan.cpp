#include "audio/audio_plan.h"

#include "core/error.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace shf {

namespace {

// a * b / c, rounded to the nearest. Throws Error(LIMIT) above 2^62.
uint64_t scaled(uint64_t a, uint64_t b, uint64_t c) {
    const unsigned __int128 value = (static_cast<unsigned __int128>(a) * b * 2 + c) / 2 / c;
    if (value >> 62 != 0)
        throw Error(SHF_E_LIMIT, "a sound of more than 2^62 frames", "give a shorter crop");
    return static_cast<uint64_t>(value);
}

// How many frames around a part are decoded with it. The filter of SOXR_HQ is shorter at every
// ratio; tests compare parts with the same frames of the whole.
uint64_t filter_margin(uint32_t from, uint32_t to) {
    constexpr uint64_t at_one_rate = 2048;
    return at_one_rate * (from / to + 1);
}

// The part of the file that `plan.frames` frames from `plan.begin` need.
void choose_source(AudioPlan& plan, const AudioHeader& header) {
    const uint64_t begin = plan.begin;
    if (plan.rate == header.rate) {
        plan.source_begin = begin;
        plan.source_frames = plan.resampled = plan.frames;
        return;
    }
    // Every `source_step` frames of the file one of the result is at exactly the same time: only
    // there may a part begin.
    const uint32_t divisor = std::gcd(header.rate, plan.rate);
    const uint64_t source_step = header.rate / divisor, step = plan.rate / divisor;
    const uint64_t margin_steps = filter_margin(header.rate, plan.rate) / source_step + 1;
    const uint64_t first = begin / step;  // number of the step
    const uint64_t first_read = first - std::min(first, margin_steps);
    const uint64_t last_read = (begin + plan.frames) / step + 1 + margin_steps;
    plan.source_begin = first_read * source_step;
    uint64_t source_end = 0;
    if (__builtin_mul_overflow(last_read, source_step, &source_end)) source_end = header.frames;
    plan.source_frames = std::min(source_end, header.frames) - plan.source_begin;
    plan.resampled = resampled_frames(plan.source_frames, header.rate, plan.rate);
    plan.skipped = begin - first_read * step;
}

// A crop that begins `since_begin` seconds after the start of a sound of `whole` frames. The number
// may be negative, or past the end.
void choose_clip(AudioPlan& plan, uint64_t wanted, uint64_t whole, double since_begin) {
    constexpr double most = 0x1p62;
    const double frames = std::clamp(std::round(since_begin * plan.rate), -most, most);
    if (frames < 0) {
        plan.silence = std::min(wanted, static_cast<uint64_t>(-frames));
    } else {
        plan.begin = std::min(whole, static_cast<uint64_t>(frames));
    }
    plan.frames = std::min(wanted - plan.silence, whole - plan.begin);
}

}  // namespace

uint64_t resampled_frames(uint64_t frames, uint32_t from, uint32_t to) {
    return scaled(frames, to, from);
}

AudioPlan plan_audio(const AudioHeader& header, const AudioOptions& options, uint64_t random,
                     double clip_start) {
    AudioPlan plan;
    plan.rate = options.rate == 0 ? header.rate : options.rate;
    const uint64_t whole = resampled_frames(header.frames, header.rate, plan.rate);
    if (whole == 0)
        throw Error(SHF_E_FORMAT,
                    "a sound of " + plural(header.frames, "frame") + " has none at a rate of " +
                        std::to_string(plan.rate),
                    "give a higher rate");
    const AudioOptions::Length& length = options.length;
    uint64_t wanted = whole;
    if (options.crop != AudioOptions::Crop::none)
        wanted = length.per_second == 0 ? length.count
                                        : scaled(length.count, plan.rate, length.per_second);
    if (wanted == 0)
        throw Error(SHF_E_FORMAT,
                    "a crop of less than one frame at a rate of " + std::to_string(plan.rate),
                    "give a longer crop, or a higher rate");
    plan.frames = std::min(wanted, whole);
    switch (options.crop) {
        case AudioOptions::Crop::none:
        case AudioOptions::Crop::start: break;
        case AudioOptions::Crop::middle: plan.begin = (whole - plan.frames) / 2; break;
        case AudioOptions::Crop::random:
            plan.begin = Random(Random::audio_crop, {random}).below(whole - plan.frames + 1);
            break;
        case AudioOptions::Crop::clip:
            choose_clip(plan, wanted, whole, clip_start - header.begins_at);
            break;
    }
    plan.padded = options.pad ? wanted : plan.silence + plan.frames;
    if (plan.padded == 0)
        throw Error(SHF_E_FORMAT, "a sound that is over when the clip of its video begins",
                    "pad makes it silence: crop=clip:2s/pad; or skip this sample with "
                    "on_error=skip_sample");
    if (plan.frames > 0) choose_source(plan, header);
    return plan;
}

}  // namespace shf
