#include "video/demuxer.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace shf {

namespace {

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
        case VideoFormat::ogg: return "ogg";
    }
    return "";
}

}  // namespace

void throw_ffmpeg(const FfmpegLog& log, const char* what, int error) {
    // It says the same where a header claims what no memory holds: where there is memory, it is
    // that.
    constexpr size_t much = size_t{64} << 20;
    if (error == AVERROR(ENOMEM)) ::operator delete(::operator new(much));
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    ffmpeg().av_strerror(error, text, sizeof text);
    bad_video(log.with_cause(std::string(what) + ": " + text));
}

void Demuxer::FreeInput::operator()(AVIOContext* input) const {
    ffmpeg().av_free(input->buffer);  // another one than it was made with, as a rule
    ffmpeg().avio_context_free(&input);
}

int Demuxer::read_bytes(void* cursor, uint8_t* to, int count) {
    auto& from = *static_cast<Cursor*>(cursor);
    const int64_t left = static_cast<int64_t>(from.bytes.size()) - from.at;
    const int64_t size = std::min<int64_t>(count, left);
    if (size <= 0) return AVERROR_EOF;
    std::memcpy(to, from.bytes.data() + from.at, static_cast<size_t>(size));
    from.at += size;
    return static_cast<int>(size);
}

int64_t Demuxer::seek_bytes(void* cursor, int64_t offset, int whence) {
    auto& in = *static_cast<Cursor*>(cursor);
    const auto size = static_cast<int64_t>(in.bytes.size());
    if ((whence & AVSEEK_SIZE) != 0) return size;
    whence &= ~AVSEEK_FORCE;
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? in.at : size;
    int64_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return AVERROR(EINVAL);
    return in.at = std::min(to, size);
}

Demuxer::Demuxer(std::span<const uint8_t> file, VideoFormat format, const FfmpegLog& log)
    : cursor_{file} {
    const Ffmpeg& library = ffmpeg();
    constexpr int buffer_size = 32 << 10;
    auto* const buffer = static_cast<uint8_t*>(library.av_malloc(buffer_size));
    if (buffer) {
        input_.reset(library.avio_alloc_context(buffer, buffer_size, 0, &cursor_, read_bytes,
                                                nullptr, seek_bytes));
        if (!input_) library.av_free(buffer);
    }
    format_.reset(library.avformat_alloc_context());
    if (!input_ || !format_) throw std::bad_alloc();
    format_->pb = input_.get();
    format_->flags |= AVFMT_FLAG_CUSTOM_IO;
    format_->io_open = open_nothing;
    const AVInputFormat* const demuxer = library.av_find_input_format(name_of(format));
    if (!demuxer)
        throw Error(SHF_E_UNSUPPORTED,
                    std::string("the libavformat of this system does not read ") + name_of(format),
                    "install one that does, or take the field as bytes");
    struct Options {
        ~Options() { ffmpeg().av_dict_free(&all); }
        AVDictionary* all = nullptr;
    } options;
    if (library.av_dict_set(&options.all, "protocol_whitelist", "none", 0) < 0)
        throw std::bad_alloc();
    AVFormatContext* context = format_.release();  // which is freed when this fails
    const int error = library.avformat_open_input(&context, nullptr, demuxer, &options.all);
    if (error < 0) throw_ffmpeg(log, "its headers cannot be read", error);
    format_.reset(context);
}

Demuxer::~Demuxer() = default;

AVStream* Demuxer::choose(AVMediaType type) {
    for (unsigned i = 0; i < format_->nb_streams; ++i) {
        AVStream* const stream = format_->streams[i];
        const bool is_wanted = stream->codecpar->codec_type == type &&
                               (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) == 0;
        if (is_wanted && !stream_)
            stream_ = stream;
        else
            stream->discard = AVDISCARD_ALL;
    }
    if (stream_ && (stream_->time_base.num <= 0 || stream_->time_base.den <= 0))
        bad_video("its times have no unit");
    return stream_;
}

void Demuxer::read(const FfmpegLog& log, const std::function<void(PacketPointer packet)>& take) {
    const Ffmpeg& library = ffmpeg();
    // Several packets may be made of the same bytes, and a packet be compressed.
    const uint64_t most_bytes = uint64_t{cursor_.bytes.size()} * 4 + (1 << 20);
    uint64_t bytes = 0, packets = 0;
    for (;;) {
        PacketPointer packet(library.av_packet_alloc());
        if (!packet) throw std::bad_alloc();
        const int error = library.av_read_frame(format_.get(), packet.get());
        if (error == AVERROR_EOF) break;
        if (error < 0) throw_ffmpeg(log, "it ends early", error);
        if (packet->stream_index != stream_->index) continue;
        if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) bad_video(log.with_cause("it ends early"));
        bytes += static_cast<uint64_t>(std::max(packet->size, 0)) + sizeof(AVPacket);
        if (bytes > most_bytes + packets++ * sizeof(AVPacket) * 4)
            bad_video("its frames have more bytes than the file");
        take(std::move(packet));
    }
}

}  // namespace shf
