#include "video/sound_track.h"

#include "audio/ogg_opus.h"
#include "audio/ogg_vorbis.h"
#include "core/error.h"
#include "core/little_endian.h"
#include "video/demuxer.h"
#include "video/media_decoder.h"
#include "video/video_end.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

// How the numbers of a frame are stored, in a plane for each channel or channel after channel.
struct SampleKind {
    AVSampleFormat format = AV_SAMPLE_FMT_NONE;
    bool planar = false;
};

SampleKind kind_of(int format) {
    switch (format) {
        case AV_SAMPLE_FMT_U8P: return {AV_SAMPLE_FMT_U8, true};
        case AV_SAMPLE_FMT_S16P: return {AV_SAMPLE_FMT_S16, true};
        case AV_SAMPLE_FMT_S32P: return {AV_SAMPLE_FMT_S32, true};
        case AV_SAMPLE_FMT_FLTP: return {AV_SAMPLE_FMT_FLT, true};
        case AV_SAMPLE_FMT_DBLP: return {AV_SAMPLE_FMT_DBL, true};
        case AV_SAMPLE_FMT_S64P: return {AV_SAMPLE_FMT_S64, true};
        default: return {static_cast<AVSampleFormat>(format), false};
    }
}

// Whole numbers of n bits become n bits' share of -1..1, as libsndfile makes them.
float as_float(uint8_t value) {
    return static_cast<float>(int{value} - 128) / 128.0F;
}
float as_float(int16_t value) {
    return static_cast<float>(value) / 32768.0F;
}
float as_float(int32_t value) {
    return static_cast<float>(static_cast<double>(value) / 2147483648.0);
}
float as_float(int64_t value) {
    return static_cast<float>(static_cast<double>(value) / 9223372036854775808.0);
}
float as_float(float value) {
    return value;
}
float as_float(double value) {
    return static_cast<float>(value);
}
int16_t as_int16(uint8_t value) {
    return static_cast<int16_t>((int{value} - 128) * 256);
}
int16_t as_int16(int16_t value) {
    return value;
}

// Numbers of the frames from `begin` on, as many as fill `to`.
template <typename Stored, typename Number, typename Convert>
void copy_frames(const AVFrame& frame, bool planar, size_t begin, size_t channels,
                 std::span<Number> to, Convert convert) {
    if (!planar) {
        const auto* from =
            reinterpret_cast<const Stored*>(frame.extended_data[0]) + begin * channels;
        std::transform(from, from + to.size(), to.begin(), convert);
        return;
    }
    for (size_t c = 0; c < channels; ++c) {
        const auto* from = reinterpret_cast<const Stored*>(frame.extended_data[c]) + begin;
        for (size_t i = c; i < to.size(); i += channels) to[i] = convert(*from++);
    }
}

void write_frames(const AVFrame& frame, size_t begin, size_t channels, std::span<float> to) {
    const auto convert = [](auto value) { return as_float(value); };
    const auto [format, planar] = kind_of(frame.format);
    switch (format) {
        case AV_SAMPLE_FMT_U8:
            return copy_frames<uint8_t>(frame, planar, begin, channels, to, convert);
        case AV_SAMPLE_FMT_S16:
            return copy_frames<int16_t>(frame, planar, begin, channels, to, convert);
        case AV_SAMPLE_FMT_S32:
            return copy_frames<int32_t>(frame, planar, begin, channels, to, convert);
        case AV_SAMPLE_FMT_S64:
            return copy_frames<int64_t>(frame, planar, begin, channels, to, convert);
        case AV_SAMPLE_FMT_FLT:
            return copy_frames<float>(frame, planar, begin, channels, to, convert);
        case AV_SAMPLE_FMT_DBL:
            return copy_frames<double>(frame, planar, begin, channels, to, convert);
        default: throw Error(SHF_E_INTERNAL, "numbers of a sound that FFmpeg does not have");
    }
}

void write_frames(const AVFrame& frame, size_t begin, size_t channels, std::span<int16_t> to) {
    const auto convert = [](auto value) { return as_int16(value); };
    const auto [format, planar] = kind_of(frame.format);
    if (format == AV_SAMPLE_FMT_U8)
        return copy_frames<uint8_t>(frame, planar, begin, channels, to, convert);
    copy_frames<int16_t>(frame, planar, begin, channels, to, convert);
}

// What is to be cut of the sound of a packet: two numbers of 32 bits, of its start and of its end.
// NULL for most.
const uint8_t* cut_of(const AVPacket& packet) {
    for (int i = 0; i < packet.side_data_elems; ++i) {
        const AVPacketSideData& data = packet.side_data[i];
        if (data.type == AV_PKT_DATA_SKIP_SAMPLES && data.size >= 8) return data.data;
    }
    return nullptr;
}

[[noreturn]] void refuse_no_frames() {
    throw Error(SHF_E_FORMAT, "a sound of 0 frames",
                "take samples that have some, or skip this one with on_error=skip_sample");
}

// Throws where something is missing. Returns what the pages of Ogg promise.
std::optional<VorbisPositions> check_end(std::span<const uint8_t> file, VideoFormat format) {
    if (format == VideoFormat::ogg) return check_ogg_vorbis(file);
    check_video_end(file);
    return std::nullopt;
}

}  // namespace

struct SoundTrack::Decoder {
    Decoder(std::span<const uint8_t> file, VideoFormat format)
        : promised(check_end(file, format)), demuxer(file, format, log) {
        stream = demuxer.choose(AVMEDIA_TYPE_AUDIO);
        if (!stream)
            throw Error(SHF_E_FORMAT, "a video without sound: it has no audio stream",
                        "take samples that have one, or skip this one with on_error=skip_sample");
        demuxer.read(log, [this](PacketPointer packet) {
            // One without bytes would mean the end to the decoder.
            if (packet->size > 0) packets.push_back(std::move(packet));
        });
        start();
    }

    void start();
    bool next();
    [[nodiscard]] size_t delay() const;
    [[nodiscard]] size_t left() const { return static_cast<size_t>(frame->nb_samples) - used; }
    std::optional<uint64_t> frames_of_packets();
    uint64_t count(uint64_t most);
    uint64_t frames_of_pages(const VorbisPositions& pages);

    FfmpegLog log;
    const std::optional<VorbisPositions> promised;
    Demuxer demuxer;
    AVStream* stream = nullptr;
    std::vector<PacketPointer> packets;
    CodecPointer codec;
    AVSampleFormat numbers = AV_SAMPLE_FMT_NONE;  // of the first frame, and so of all
    FramePointer frame;                           // what came out last
    size_t used = 0;                              // frames of it that are taken
    size_t next_packet = 0;                       // that is sent
    bool flushed = false;
    size_t before_start = 0;  // frames that come before position 0 of Ogg
    size_t to_skip = 0;       // of these, or of the encoder's delay, those that are to come
    uint64_t at = 0;          // frames that are taken in all
};

// Begins with the first packet.
void SoundTrack::Decoder::start() {
    codec = new_decoder(*stream, log);
    codec->pkt_timebase = stream->time_base;  // in which it says how much was cut
    // libavformat cuts too much where all sound is on the last page of Ogg.
    if (promised) codec->flags2 |= AV_CODEC_FLAG2_SKIP_MANUAL;
    start_decoder(*codec, log);
    if (frame)
        ffmpeg().av_frame_unref(frame.get());
    else
        frame = new_frame();
    used = next_packet = 0;
    flushed = false;
    to_skip = promised ? before_start : delay();
    at = 0;
}

// How many frames at the start are the delay of the encoder, as Matroska says it, where neither
// libavformat (before its version 61) nor the decoder, as that of Opus does, leaves them out.
size_t SoundTrack::Decoder::delay() const {
    const AVCodecParameters& parameters = *stream->codecpar;
    const bool is_left_out =
        parameters.codec_id == AV_CODEC_ID_OPUS || packets.empty() || cut_of(*packets.front());
    return is_left_out ? 0 : static_cast<size_t>(std::max(parameters.initial_padding, 0));
}

// The next ones that come out are in `frame`. False: there are no more.
bool SoundTrack::Decoder::next() {
    const Ffmpeg& library = ffmpeg();
    for (;;) {
        used = 0;
        const int error = library.avcodec_receive_frame(codec.get(), frame.get());
        if (error == AVERROR_EOF) return false;
        if (error == 0) {
            if ((frame->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame->decode_error_flags != 0)
                bad_video(log.with_cause("a part of its sound is missing"));
            const size_t count = static_cast<size_t>(std::max(frame->nb_samples, 0));
            used = std::min(to_skip, count);
            to_skip -= used;
            if (used < count) return true;
            continue;
        }
        if (error != AVERROR(EAGAIN)) throw_ffmpeg(log, "its sound cannot be decoded", error);
        if (flushed) return false;
        flushed = next_packet == packets.size();
        const AVPacket* const packet = flushed ? nullptr : packets[next_packet++].get();
        if (const int sent = library.avcodec_send_packet(codec.get(), packet); sent < 0)
            throw_ffmpeg(log, "its sound cannot be decoded", sent);
    }
}

// How many frames come out in all, by the packets, so that not all have to be decoded only to count
// them: of the two codecs that most files have. It begins with the first packet again.
std::optional<uint64_t> SoundTrack::Decoder::frames_of_packets() {
    const bool is_opus = codec->codec_id == AV_CODEC_ID_OPUS;
    if (!is_opus && codec->codec_id != AV_CODEC_ID_AAC) return std::nullopt;
    // Neither has a delay: a packet becomes a frame, of which only the first one may be cut.
    auto frames = static_cast<uint64_t>(left());
    const std::span<const PacketPointer> others = std::span(packets).subspan(next_packet);
    const bool has_second = next();
    const auto usual = static_cast<uint64_t>(left());
    start();
    if (!has_second && !others.empty()) return std::nullopt;
    for (const PacketPointer& packet : others) {
        const uint8_t* const cut = cut_of(*packet);
        const std::span bytes(packet->data, static_cast<size_t>(packet->size));
        const std::optional<int64_t> count =
            is_opus ? opus_packet_frames(bytes) : static_cast<int64_t>(usual);
        const bool is_begin_cut = cut && le32(cut) != 0;
        if (!count || is_begin_cut || (packet->flags & AV_PKT_FLAG_DISCARD) != 0)
            return std::nullopt;
        const uint64_t end_cut = cut ? le32(cut + 4) : 0;
        const auto heard = static_cast<uint64_t>(*count);
        frames += end_cut > heard ? heard : heard - end_cut;
    }
    return frames;
}

// The same by decoding, up to more than `most`, from the frame that came out last, or from the
// start.
uint64_t SoundTrack::Decoder::count(uint64_t most) {
    uint64_t frames = left();
    while (frames <= most && next()) frames += left();
    start();
    return frames;
}

// How many frames there are by the positions of pages (Vorbis I, A.2). After the first next(); it
// begins with the first packet again.
uint64_t SoundTrack::Decoder::frames_of_pages(const VorbisPositions& pages) {
    uint64_t first = 0;
    do {
        if (next_packet <= pages.first_packets) first += left();
    } while (next_packet <= pages.first_packets && next());
    if (!pages.is_one_page && first > pages.first)
        before_start = static_cast<size_t>(first - pages.first);
    start();
    if (pages.is_one_page) return std::min(first, pages.end);
    // A recording from the middle does not begin at 0.
    return pages.end - (first < pages.first ? pages.first - first : 0);
}

SoundTrack::SoundTrack(std::span<const uint8_t> file, VideoFormat format, uint64_t most_numbers)
    : decoder_(std::make_unique<Decoder>(file, format)) {
    Decoder& decoder = *decoder_;
    const AVFrame& first = *decoder.frame;
    if (!decoder.next()) refuse_no_frames();
    if (first.sample_rate < 1 || first.ch_layout.nb_channels < 1)
        bad_video("a sound without channels, or with a rate of 0");
    header_.rate = static_cast<uint32_t>(first.sample_rate);
    header_.channels = static_cast<uint32_t>(first.ch_layout.nb_channels);
    if (first.pts != AV_NOPTS_VALUE)
        header_.begins_at = static_cast<double>(first.pts) * decoder.stream->time_base.num /
                                decoder.stream->time_base.den +
                            static_cast<double>(decoder.used) / first.sample_rate;
    decoder.numbers = kind_of(first.format).format;
    header_.fits_in_16_bits =
        decoder.numbers == AV_SAMPLE_FMT_U8 || decoder.numbers == AV_SAMPLE_FMT_S16;
    if (decoder.promised) {
        header_.frames = decoder.frames_of_pages(*decoder.promised);
        if (header_.frames == 0) refuse_no_frames();
        return;
    }
    if (const std::optional<uint64_t> frames = decoder.frames_of_packets()) {
        header_.frames = *frames;
        return;
    }
    const uint64_t most = most_numbers / header_.channels;
    header_.frames = decoder.count(most);
    if (header_.frames > most)
        throw Error(SHF_E_LIMIT,
                    "a sound of more than " + plural(most, "frame") +
                        ", which have to be decoded to count them",
                    "convert it to AAC or Opus, whose packets say it, or raise max_decoded");
}

SoundTrack::~SoundTrack() = default;

void SoundTrack::seek(uint64_t frame) {
    Decoder& decoder = *decoder_;
    while (decoder.at < frame) {
        if (decoder.left() == 0 && !decoder.next())
            bad_video("its sound ends after " + plural(decoder.at, "frame"));
        const auto skipped =
            static_cast<size_t>(std::min<uint64_t>(decoder.left(), frame - decoder.at));
        decoder.used += skipped;
        decoder.at += skipped;
    }
}

template <typename Number>
void SoundTrack::read_all(std::span<Number> numbers) {
    Decoder& decoder = *decoder_;
    const size_t channels = header_.channels;
    while (!numbers.empty()) {
        if (decoder.left() == 0 && !decoder.next())
            bad_video("its sound ends after " + plural(decoder.at, "frame") + " of " +
                      std::to_string(header_.frames));
        const AVFrame& frame = *decoder.frame;
        if (frame.sample_rate != static_cast<int>(header_.rate) ||
            frame.ch_layout.nb_channels != static_cast<int>(header_.channels) ||
            kind_of(frame.format).format != decoder.numbers)
            bad_video("its sound changes from " + plural(header_.channels, "channel") + " at " +
                      std::to_string(header_.rate) + " Hz to " +
                      std::to_string(frame.ch_layout.nb_channels) + " at " +
                      std::to_string(frame.sample_rate) + " Hz");
        const size_t frames = std::min(decoder.left(), numbers.size() / channels);
        write_frames(frame, decoder.used, channels, numbers.first(frames * channels));
        decoder.used += frames;
        decoder.at += frames;
        numbers = numbers.subspan(frames * channels);
    }
}

void SoundTrack::read(std::span<float> numbers) {
    read_all(numbers);
}

void SoundTrack::read(std::span<int16_t> numbers) {
    read_all(numbers);
}

}  // namespace shf
