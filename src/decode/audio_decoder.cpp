#include "decode/audio_decoder.h"

#include "audio/audio_file.h"
#include "audio/audio_plan.h"
#include "audio/ogg_vorbis.h"
#include "audio/resample_audio.h"
#include "core/error.h"
#include "core/memory_to_decode.h"
#include "decode/audio_scratch.h"
#include "image/image_geometry.h"
#include "video/clip_start.h"
#include "video/sound_track.h"
#include "video/video_format.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace shf {

namespace {

int16_t to_int16(float value) {
    const float scaled = std::nearbyint(value * 32768.0F);
    if (!(scaled >= -32768.0F)) return -32768;  // NaN too
    return scaled >= 32767.0F ? int16_t{32767} : static_cast<int16_t>(scaled);
}

// About what libsndfile and libsoxr need.
constexpr size_t sound_memory = 1 << 20;

class AudioDecoder final : public Decoder {
  public:
    AudioDecoder(const AudioOptions& options, const VideoOptions& video, const ImageOptions& image,
                 uint64_t max_decoded)
        : options_(options), video_(video), image_(image), max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field, uint64_t random) const override {
        Measured measured;
        with_memory_to_decode(sound_memory, [&] {
            const AudioHeader header = open(field)->header();
            measured.type = type_of(plan(field, header, random), channels_of(header));
        });
        return measured;
    }

    [[nodiscard]] std::string record(std::span<const uint8_t> field,
                                     uint64_t random) const override {
        const AudioPlan plan = this->plan(field, open(field)->header(), random);
        nlohmann::ordered_json record = {
            {"rate", plan.rate}, {"start", plan.begin}, {"frames", plan.frames}};
        if (options_.crop == AudioOptions::Crop::clip) record["silence"] = plan.silence;
        return record.dump();
    }

    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const override {
        with_memory_to_decode(sound_memory,
                              [&] { decode_once(field, random, type, out, scratch); });
    }

  private:
    void decode_once(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                     std::span<uint8_t> out, DecodeScratch& scratch) const {
        const std::unique_ptr<Sound> opened = open(field);
        Sound& file = *opened;
        const AudioPlan plan = this->plan(field, file.header(), random);
        const uint32_t channels = channels_of(file.header());
        if (type_of(plan, channels) != type || out.size() != type.bytes())
            throw Error(SHF_E_INTERNAL, "a sound is decoded into what was measured of another");
        if (plan.frames == 0) {
            std::fill(out.begin(), out.end(), uint8_t{0});
            return;
        }
        const bool resamples = plan.rate != file.header().rate;
        const bool same_layout = channels == 1 || !options_.channels_first;
        const bool same_channels = channels == file.header().channels;
        if (plan.source_begin != 0) file.seek(plan.source_begin);
        if (!resamples && same_layout && same_channels && reads_straight(file.header())) {
            const size_t size = channels * number_size();
            const std::span<uint8_t> heard = out.subspan(plan.silence * size, plan.frames * size);
            if (options_.numbers == AudioOptions::Numbers::int16)
                file.read(std::span(reinterpret_cast<int16_t*>(heard.data()), heard.size() / 2));
            else
                file.read(std::span(reinterpret_cast<float*>(heard.data()), heard.size() / 4));
            const size_t before = plan.silence * size, after = before + heard.size();
            std::memset(out.data(), 0, before);
            std::memset(out.data() + after, 0, out.size() - after);
            return;
        }
        if (!scratch.audio) scratch.audio = std::make_unique<AudioScratch>();
        const AudioScratch::Trim trim{*scratch.audio};
        std::span<float> sound = scratch.audio->stored.hold(plan.source_frames * channels);
        if (same_channels)
            file.read(sound);
        else
            read_mean(file, sound);
        if (resamples) {
            const std::span<float> resampled =
                scratch.audio->resampled.hold((plan.resampled + 1) * channels);
            resample_audio(sound, channels, file.header().rate, plan.rate, resampled);
            sound = resampled.subspan(plan.skipped * channels);
        }
        sound = sound.first(plan.frames * channels);
        if (options_.numbers == AudioOptions::Numbers::int16)
            write(sound, channels, plan, reinterpret_cast<int16_t*>(out.data()), to_int16);
        else
            write(sound, channels, plan, reinterpret_cast<float*>(out.data()),
                  [](float value) { return value; });
    }

    [[nodiscard]] std::unique_ptr<Sound> open(std::span<const uint8_t> field) const {
        // A part of a sound may be wanted that is longer than what may be decoded of it.
        constexpr uint64_t longer = 16;
        std::optional<VideoFormat> format = video_format(field);
        if (is_ogg_vorbis(field)) format = VideoFormat::ogg;
        if (format)
            return std::make_unique<SoundTrack>(field, *format,
                                                max_decoded_ / sizeof(float) * longer);
        return std::make_unique<AudioFile>(field);
    }
    [[nodiscard]] size_t number_size() const {
        return options_.numbers == AudioOptions::Numbers::int16 ? 2 : 4;
    }
    // Whether libsndfile writes the numbers that come out.
    [[nodiscard]] bool reads_straight(const AudioHeader& header) const {
        return options_.numbers == AudioOptions::Numbers::float32 || header.fits_in_16_bits;
    }
    [[nodiscard]] uint32_t channels_of(const AudioHeader& header) const {
        return options_.mono ? 1 : header.channels;
    }

    [[nodiscard]] AudioPlan plan(std::span<const uint8_t> field, const AudioHeader& header,
                                 uint64_t random) const {
        const bool is_cut = options_.crop == AudioOptions::Crop::clip;
        const double start =
            is_cut ? clip_start(field, video_, choices_of_view(image_, random)) : 0;
        const AudioPlan plan = plan_audio(header, options_, random, start);
        const auto check = [&](uint64_t frames, uint32_t channels, const char* what) {
            uint64_t bytes = 0;
            if (__builtin_mul_overflow(frames, uint64_t{channels} * sizeof(float), &bytes) ||
                bytes > max_decoded_)
                throw Error(SHF_E_LIMIT,
                            std::string(what) + " of " + plural(frames, "frame") +
                                " takes more than max_decoded=" + std::to_string(max_decoded_) +
                                " bytes as float32",
                            "crop it, or raise max_decoded if you trust the source");
        };
        check(plan.source_frames, header.channels, "a sound");
        check(plan.resampled + 1, channels_of(header), "a resampled sound");
        check(plan.padded, channels_of(header), "a result");
        return plan;
    }

    [[nodiscard]] ArrayType type_of(const AudioPlan& plan, uint32_t channels) const {
        const DType dtype =
            options_.numbers == AudioOptions::Numbers::int16 ? DType::i16 : DType::f32;
        const auto frames = static_cast<int64_t>(plan.padded);
        if (options_.mono) return {dtype, 1, {frames}};
        if (options_.channels_first) return {dtype, 2, {channels, frames}};
        return {dtype, 2, {frames, channels}};
    }

    static void read_mean(Sound& file, std::span<float> out) {
        constexpr size_t most_numbers = 8192;
        const size_t channels = file.header().channels;
        std::vector<float> piece(std::max(most_numbers / channels, size_t{1}) * channels);
        const float share = 1.0F / static_cast<float>(channels);
        while (!out.empty()) {
            const size_t frames = std::min(out.size(), piece.size() / channels);
            file.read(std::span(piece).first(frames * channels));
            for (size_t i = 0; i < frames; ++i) {
                float sum = 0;
                for (size_t c = 0; c < channels; ++c) sum += piece[i * channels + c];
                out[i] = sum * share;
            }
            out = out.subspan(frames);
        }
    }

    // Writes `sound` between the zeros of its plan.
    template <typename Number, typename Convert>
    void write(std::span<const float> sound, size_t channels, const AudioPlan& plan, Number* out,
               Convert convert) const {
        const size_t frames = sound.size() / channels;
        if (channels == 1 || !options_.channels_first) {
            Number* const end = out + plan.padded * channels;
            out = std::fill_n(out, plan.silence * channels, Number{0});
            out = std::transform(sound.begin(), sound.end(), out, convert);
            std::fill(out, end, Number{0});
            return;
        }
        for (size_t c = 0; c < channels; ++c) {
            Number* const row = out + c * plan.padded;
            Number* const heard = std::fill_n(row, plan.silence, Number{0});
            for (size_t i = 0; i < frames; ++i) heard[i] = convert(sound[i * channels + c]);
            std::fill(heard + frames, row + plan.padded, Number{0});
        }
    }

    const AudioOptions options_;
    const VideoOptions video_;  // of the clip that it is cut to
    const ImageOptions image_;
    const uint64_t max_decoded_;
};

}  // namespace

std::unique_ptr<Decoder> audio_decoder(const AudioOptions& options, const VideoOptions& video,
                                       const ImageOptions& image, uint64_t max_decoded) {
    if (options.pad && options.crop == AudioOptions::Crop::none)
        throw Error(SHF_E_USAGE, "a sound is padded to the length of its crop, and has none",
                    "for example crop=5s/pad");
    return std::make_unique<AudioDecoder>(options, video, image, max_decoded);
}

}  // namespace shf
