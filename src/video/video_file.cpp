#include "video/video_file.h"

#include "core/error.h"
#include "video/ffmpeg.h"
#include "video/media_decoder.h"
#include "video/video_colours.h"
#include "video/video_end.h"
#include "video/video_packets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>

namespace shf {

namespace {

// What the container says of how frames are to be turned: the first four numbers of its matrix.
const int32_t* display_matrix(const AVStream& stream) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
    const AVPacketSideData* const all = stream.codecpar->coded_side_data;
    const int count = stream.codecpar->nb_coded_side_data;
#else
    const AVPacketSideData* const all = stream.side_data;
    const int count = stream.nb_side_data;
#endif
    for (int i = 0; i < count; ++i)
        if (all[i].type == AV_PKT_DATA_DISPLAYMATRIX && all[i].size >= 9 * sizeof(int32_t))
            return reinterpret_cast<const int32_t*>(all[i].data);
    return nullptr;
}

// The place (x, y) of a frame comes to lie at (ax + cy, bx + dy): a turn by a multiple of 90
// degrees, perhaps with a flip. What lies between is the nearest of these, as players show it.
uint32_t orientation_of(const int32_t* matrix) {
    if (!matrix) return 1;
    const double a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (std::abs(a) + std::abs(d) >= std::abs(b) + std::abs(c)) {
        if (a == 0 || d == 0) return 1;  // not a matrix
        return a > 0 ? (d > 0 ? 1 : 4) : (d > 0 ? 2 : 3);
    }
    if (b == 0 || c == 0) return 1;
    return b > 0 ? (c > 0 ? 5 : 6) : (c > 0 ? 8 : 7);
}

class DecodedFrame final : public VideoFrame {
  public:
    DecodedFrame(const AVFrame& frame, FrameColours& colours)
        : VideoFrame(static_cast<uint32_t>(frame.width), static_cast<uint32_t>(frame.height)),
          frame_(frame),
          colours_(colours) {}
    void write(uint8_t* to, size_t stride, uint32_t channels) const override {
        colours_.write(frame_, to, stride, channels);
    }

  private:
    const AVFrame& frame_;
    FrameColours& colours_;
};

}  // namespace

using FrameTaker = std::function<void(uint64_t number, const VideoFrame& frame)>;

struct VideoFile::Decoder {
    Decoder(std::span<const uint8_t> file, uint64_t most_pixels)
        : packets(file, log), most_pixels(most_pixels) {}

    void open();
    bool run(std::span<const uint64_t>& wanted, bool jumps, const VideoHeader& header,
             const FrameTaker& take);
    bool jump(std::span<const uint64_t>& wanted, const VideoHeader& header, const FrameTaker& take);
    void send(AVPacket* packet, bool is_wanted);
    bool receive();
    bool deliver(std::span<const uint64_t>& wanted, const VideoHeader& header,
                 const FrameTaker& take);
    size_t start_for(uint64_t number, size_t from) const;

    FfmpegLog log;
    VideoPackets packets;
    const uint64_t most_pixels;
    bool was_read = false;
    CodecPointer codec;
    FramePointer frame;
    FrameColours colours;
    int64_t received = 0;  // since the decoder was opened
    bool has_jumped = false;
};

// A new one for each reading: what it has seen must not matter.
void VideoFile::Decoder::open() {
    codec = new_decoder(packets.stream(), log);
    if (!frame) frame = new_frame();
    codec->max_pixels = static_cast<int64_t>(std::min<uint64_t>(most_pixels, INT64_MAX));
    // Where the stream does not say it, the decoder would find out by losing frames.
    codec->has_b_frames = std::max(codec->has_b_frames, packets.reordered());
    start_decoder(*codec, log);
    received = 0;
}

void VideoFile::Decoder::send(AVPacket* packet, bool is_wanted) {
    // A frame that no other is made of may be left out.
    codec->skip_frame = is_wanted ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
    const int error = ffmpeg().avcodec_send_packet(codec.get(), packet);
    if (error < 0) throw_ffmpeg(log, "a frame cannot be decoded", error);
}

// The next frame that comes out. False: it needs another packet, or there are no more.
bool VideoFile::Decoder::receive() {
    const int error = ffmpeg().avcodec_receive_frame(codec.get(), frame.get());
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return false;
    if (error < 0) throw_ffmpeg(log, "a frame cannot be decoded", error);
    const bool is_corrupt = (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    if (is_corrupt || frame->decode_error_flags != 0)
        bad_video(log.with_cause("a part of a frame is missing"));
    if (!packets.has_times()) frame->pts = received;
    ++received;
    return true;
}

// Hands over the frames that came out and are wanted. False: all that are wanted did, or one is
// lost.
bool VideoFile::Decoder::deliver(std::span<const uint64_t>& wanted, const VideoHeader& header,
                                 const FrameTaker& take) {
    while (receive()) {
        const auto next = static_cast<int64_t>(wanted.front());
        if (frame->pts == next) {
            const DecodedFrame found(*frame, colours);
            const bool is_known = header.width != 0;
            if (is_known && (found.width != header.width || found.height != header.height))
                bad_video("a frame of " + std::to_string(found.width) + "x" +
                          std::to_string(found.height) + " in a video of " +
                          std::to_string(header.width) + "x" + std::to_string(header.height));
            take(wanted.front(), found);
            wanted = wanted.subspan(1);
        } else if (frame->pts != AV_NOPTS_VALUE && frame->pts > next) {
            return false;
        }
        ffmpeg().av_frame_unref(frame.get());
        if (wanted.empty()) return false;
    }
    return true;
}

// The last packet from which the frame can be decoded; `from`, where the next one is, if that is
// none of those to come.
size_t VideoFile::Decoder::start_for(uint64_t number, size_t from) const {
    const std::span<const VideoPacket> all = packets.packets();
    for (size_t i = packets.place_of(number); i > from; --i)
        if (all[i].is_key && all[i].number != VideoPacket::no_number &&
            all[i].number <= static_cast<int64_t>(number))
            return i;
    return from;
}

// Decodes from the start, or with `jumps` from the key frame before each wanted one; takes those
// away that were handed over. False: one of them did not come out.
bool VideoFile::Decoder::run(std::span<const uint64_t>& wanted, bool jumps,
                             const VideoHeader& header, const FrameTaker& take) {
    open();
    const std::span<VideoPacket> all = packets.packets();
    int64_t begin = 0;  // what is shown before this one may need what was jumped over
    uint64_t looked_for = std::numeric_limits<uint64_t>::max();
    for (size_t i = 0; i < all.size(); ++i) {
        if (jumps && wanted.front() != looked_for) {
            looked_for = wanted.front();
            const size_t start = start_for(looked_for, i);
            if (start > i) {
                i = start;
                has_jumped = true;
                ffmpeg().avcodec_flush_buffers(codec.get());
                begin = all[i].number;
            }
        }
        VideoPacket& packet = all[i];
        if (packet.number != VideoPacket::no_number && packet.number < begin) continue;
        packet.data->pts = packet.number == VideoPacket::no_number ? AV_NOPTS_VALUE : packet.number;
        packet.data->dts = AV_NOPTS_VALUE;
        const bool is_wanted =
            !packets.has_times() ||
            std::binary_search(wanted.begin(), wanted.end(), static_cast<uint64_t>(packet.number));
        send(packet.data.get(), is_wanted);
        if (!deliver(wanted, header, take)) return wanted.empty();
    }
    send(nullptr, true);
    deliver(wanted, header, take);
    return wanted.empty();
}

// The same with jumps. False too where the decoder fails after one: it may have missed what was
// jumped over.
bool VideoFile::Decoder::jump(std::span<const uint64_t>& wanted, const VideoHeader& header,
                              const FrameTaker& take) {
    try {
        return run(wanted, true, header, take);
    } catch (const Error& error) {
        if (!has_jumped || error.fault().code != SHF_E_FORMAT) throw;
        return false;
    }
}

VideoFile::VideoFile(std::span<const uint8_t> file, uint64_t most_pixels)
    : decoder_(std::make_unique<Decoder>(file, most_pixels)) {
    const AVCodecParameters& parameters = *decoder_->packets.stream().codecpar;
    header_.orientation = orientation_of(display_matrix(decoder_->packets.stream()));
    if (parameters.width < 1 || parameters.height < 1) {
        find_size();
        return;
    }
    header_.width = static_cast<uint32_t>(parameters.width);
    header_.height = static_cast<uint32_t>(parameters.height);
}

// Of some codecs (MPEG-4 part 2 in MP4) it is not the container that says it.
void VideoFile::find_size() {
    const uint64_t first[] = {0};
    VideoHeader found = header_;
    decode(first, [&found](uint64_t /*number*/, const VideoFrame& frame) {
        found.width = frame.width;
        found.height = frame.height;
    });
    header_ = found;
}

VideoFile::~VideoFile() = default;

const VideoTimes& VideoFile::times() {
    if (!decoder_->was_read) decoder_->packets.read(decoder_->log);
    decoder_->was_read = true;
    return decoder_->packets.times();
}

void VideoFile::decode(std::span<const uint64_t> wanted, const FrameTaker& take) {
    times();
    if (wanted.empty()) return;
    // There are key frames from which not all can be decoded that follow: those of open groups of
    // pictures, and of gradual refreshes.
    if (decoder_->packets.has_times() && decoder_->jump(wanted, header_, take)) return;
    if (decoder_->run(wanted, false, header_, take)) return;
    bad_video(decoder_->log.with_cause("frame " + std::to_string(wanted.front()) + " of " +
                                       plural(decoder_->packets.times().at.size(), "frame") +
                                       " does not come out of its decoder"));
}

const char* video_library() {
    return ffmpeg_version();
}

}  // namespace shf
