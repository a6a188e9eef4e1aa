#include "video/video_packets.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace shf {

namespace {

constexpr const char* damaged_video_help =
    "write the video again, or skip its sample with on_error=skip_sample";

// No file or address that a video names is opened.
int open_nothing(AVFormatContext* /*format*/, AVIOContext** /*input*/, const char* /*url*/,
                 int /*flags*/, AVDictionary** /*options*/) {
    return AVERROR(EPERM);
}

const char* name_of(VideoFormat format) {
    switch (format) {
        case VideoFormat::mp4: return "mov";
        case VideoFormat::matroska: return "matroska";
        case VideoFormat::avi: return "avi";
    }
    return "";
}

// VP8 has frames that are never shown, whose packets have a time like any other (RFC 6386, 9.1).
bool is_shown(AVCodecID codec, const AVPacket& packet) {
    if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;
    return codec != AV_CODEC_ID_VP8 || packet.size == 0 || (packet.data[0] & 0x10) != 0;
}

}  // namespace

void bad_video(const std::string& cause) {
    throw Error(SHF_E_FORMAT, "a damaged video: " + cause, damaged_video_help);
}

void throw_ffmpeg(const FfmpegLog& log, const char* what, int error) {
    // It says the same where a header claims what no memory holds: where there is memory, it is
    // that.
    constexpr size_t much = size_t{64} << 20;
    if (error == AVERROR(ENOMEM)) ::operator delete(::operator new(much));
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    ffmpeg().av_strerror(error, text, sizeof text);
    bad_video(log.with_cause(std::string(what) + ": " + text));
}

void VideoPackets::FreeInput::operator()(AVIOContext* input) const {
    ffmpeg().av_free(input->buffer);  // another one than it was made with, as a rule
    ffmpeg().avio_context_free(&input);
}

int VideoPackets::read_bytes(void* cursor, uint8_t* to, int count) {
    auto& from = *static_cast<Cursor*>(cursor);
    const int64_t left = static_cast<int64_t>(from.bytes.size()) - from.at;
    const int64_t size = std::min<int64_t>(count, left);
    if (size <= 0) return AVERROR_EOF;
    std::memcpy(to, from.bytes.data() + from.at, static_cast<size_t>(size));
    from.at += size;
    return static_cast<int>(size);
}

int64_t VideoPackets::seek_bytes(void* cursor, int64_t offset, int whence) {
    auto& in = *static_cast<Cursor*>(cursor);
    const auto size = static_cast<int64_t>(in.bytes.size());
    if ((whence & AVSEEK_SIZE) != 0) return size;
    whence &= ~AVSEEK_FORCE;
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? in.at : size;
    int64_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return AVERROR(EINVAL);
    return in.at = std::min(to, size);
}

VideoPackets::VideoPackets(std::span<const uint8_t> file, const FfmpegLog& log) : cursor_{file} {
    open(check_video_end(file), log);
    choose_stream();
}

VideoPackets::~VideoPackets() = default;

void VideoPackets::open(VideoFormat format, const FfmpegLog& log) {
    const Ffmpeg& library = ffmpeg();
    constexpr int buffer_size = 32 << 10;
    auto* const buffer = static_cast<uint8_t*>(library.av_malloc(buffer_size));
    if (buffer) {
        input_.reset(library.avio_alloc_context(buffer, buffer_size, 0, &cursor_, read_bytes,
                                                nullptr, seek_bytes));
        if (!input_) library.av_free(buffer);
    }
    AVFormatContext* context = library.avformat_alloc_context();
    if (!input_ || !context) throw std::bad_alloc();
    context->pb = input_.get();
    context->flags |= AVFMT_FLAG_CUSTOM_IO;
    context->io_open = open_nothing;
    const AVInputFormat* const demuxer = library.av_find_input_format(name_of(format));
    if (!demuxer) {
        format_.reset(context);
        throw Error(SHF_E_UNSUPPORTED,
                    std::string("the libavformat of this system does not read ") + name_of(format),
                    "install one that does, or take the field as bytes");
    }
    struct Options {
        ~Options() { ffmpeg().av_dict_free(&all); }
        AVDictionary* all = nullptr;
    } options;
    if (library.av_dict_set(&options.all, "protocol_whitelist", "none", 0) < 0) {
        format_.reset(context);
        throw std::bad_alloc();
    }
    // It frees the context when it fails.
    const int error = library.avformat_open_input(&context, nullptr, demuxer, &options.all);
    if (error < 0) throw_ffmpeg(log, "its headers cannot be read", error);
    format_.reset(context);
}

// The first one that is no picture on a cover; the packets of all others are not even read.
void VideoPackets::choose_stream() {
    for (unsigned i = 0; i < format_->nb_streams; ++i) {
        AVStream* const stream = format_->streams[i];
        const bool is_video = stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
                              (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) == 0;
        if (is_video && !stream_)
            stream_ = stream;
        else
            stream->discard = AVDISCARD_ALL;
    }
    if (!stream_)
        throw Error(SHF_E_FORMAT, "a video without pictures: it has no video stream",
                    "take the field as bytes, or as audio");
    if (stream_->time_base.num <= 0 || stream_->time_base.den <= 0)
        bad_video("its times have no unit");
}

void VideoPackets::read(const FfmpegLog& log) {
    const Ffmpeg& library = ffmpeg();
    const AVCodecID codec = stream_->codecpar->codec_id;
    // Several packets may be made of the same bytes, and a packet be compressed.
    const uint64_t most_bytes = uint64_t{cursor_.bytes.size()} * 4 + (1 << 20);
    uint64_t bytes = 0;
    for (;;) {
        VideoPacket packet;
        packet.data.reset(library.av_packet_alloc());
        if (!packet.data) throw std::bad_alloc();
        const int error = library.av_read_frame(format_.get(), packet.data.get());
        if (error == AVERROR_EOF) break;
        if (error < 0) throw_ffmpeg(log, "it ends early", error);
        const AVPacket& found = *packet.data;
        if (found.stream_index != stream_->index) continue;
        if ((found.flags & AV_PKT_FLAG_CORRUPT) != 0) bad_video(log.with_cause("it ends early"));
        bytes += static_cast<uint64_t>(std::max(found.size, 0)) + sizeof(AVPacket);
        if (bytes > most_bytes + packets_.size() * sizeof(AVPacket) * 4)
            bad_video("its frames have more bytes than the file");
        packet.is_key = (found.flags & AV_PKT_FLAG_KEY) != 0;
        if (is_shown(codec, found)) {
            packet.number = 0;
            has_times_ = has_times_ && found.pts != AV_NOPTS_VALUE;
        }
        packets_.push_back(std::move(packet));
    }
    if (has_times_) drop_what_was_cut();
    number();
    find_places();
}

// What comes before the first key frame, in order of decoding or of time, needs frames that are not
// there. No decoder shows it.
void VideoPackets::drop_what_was_cut() {
    const auto key = std::find_if(packets_.begin(), packets_.end(),
                                  [](const VideoPacket& packet) { return packet.is_key; });
    if (key == packets_.end()) bad_video("it has no key frame");
    packets_.erase(packets_.begin(), key);
    const VideoPacket& first = packets_.front();
    if (first.number == VideoPacket::no_number) return;
    std::erase_if(packets_, [begin = first.data->pts](const VideoPacket& packet) {
        return packet.number != VideoPacket::no_number && packet.data->pts < begin;
    });
}

void VideoPackets::number() {
    std::vector<VideoPacket*> shown;
    for (VideoPacket& packet : packets_)
        if (packet.number != VideoPacket::no_number) shown.push_back(&packet);
    if (shown.empty()) bad_video("it has no frames");
    times_.unit_count = stream_->time_base.num;
    times_.unit_parts = stream_->time_base.den;
    if (!has_times_) return number_by_place();
    std::stable_sort(shown.begin(), shown.end(), [](const VideoPacket* a, const VideoPacket* b) {
        return a->data->pts < b->data->pts;
    });
    for (size_t i = 0; i < shown.size(); ++i) {
        times_.at.push_back(shown[i]->data->pts);
        shown[i]->number = static_cast<int64_t>(i);
    }
    const int64_t first = times_.at.front(), last = times_.at.back();
    int64_t distance = 0, length = shown.back()->data->duration;
    if (__builtin_sub_overflow(last, first, &distance)) bad_video("its times are too large");
    if (length <= 0 && shown.size() > 1) length = distance / static_cast<int64_t>(shown.size() - 1);
    if (__builtin_add_overflow(last, std::max<int64_t>(length, 1), &times_.end))
        bad_video("its times are too large");
    // A frame waits for as many as are decoded before it and shown after it. No codec has more than
    // 16 of them.
    constexpr size_t looked_back = 32;
    for (size_t i = 0; i < packets_.size(); ++i) {
        int later = 0;
        for (size_t j = i - std::min(i, looked_back); j < i; ++j)
            later += packets_[i].number != VideoPacket::no_number &&
                     packets_[j].number > packets_[i].number;
        reordered_ = std::min(std::max(reordered_, later), 16);
    }
}

void VideoPackets::find_places() {
    places_.resize(times_.at.size());
    for (size_t i = 0; i < packets_.size(); ++i)
        if (packets_[i].number != VideoPacket::no_number)
            places_[static_cast<size_t>(packets_[i].number)] = i;
}

// AVI knows no times but those of decoding, which are as far apart.
void VideoPackets::number_by_place() {
    int64_t number = 0;
    for (VideoPacket& packet : packets_)
        if (packet.number != VideoPacket::no_number) packet.number = number++;
    const AVRational rate = stream_->avg_frame_rate.num > 0 && stream_->avg_frame_rate.den > 0
                                ? stream_->avg_frame_rate
                                : AVRational{25, 1};
    times_.unit_count = rate.den;
    times_.unit_parts = rate.num;
    for (int64_t i = 0; i < number; ++i) times_.at.push_back(i);
    times_.end = number;
}

}  // namespace shf
