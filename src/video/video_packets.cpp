#include "video/video_packets.h"

#include "core/error.h"

#include <algorithm>
#include <utility>

namespace shf {

namespace {

// VP8 has frames that are never shown, whose packets have a time like any other (RFC 6386, 9.1).
bool is_shown(AVCodecID codec, const AVPacket& packet) {
    if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;
    return codec != AV_CODEC_ID_VP8 || packet.size == 0 || (packet.data[0] & 0x10) != 0;
}

}  // namespace

VideoPackets::VideoPackets(std::span<const uint8_t> file, const FfmpegLog& log)
    : demuxer_(file, check_video_end(file), log), stream_(demuxer_.choose(AVMEDIA_TYPE_VIDEO)) {
    if (!stream_)
        throw Error(SHF_E_FORMAT, "a video without pictures: it has no video stream",
                    "take the field as bytes, or as audio");
}

VideoPackets::~VideoPackets() = default;

void VideoPackets::read(const FfmpegLog& log) {
    const AVCodecID codec = stream_->codecpar->codec_id;
    demuxer_.read(log, [&](PacketPointer data) {
        VideoPacket packet;
        packet.is_key = (data->flags & AV_PKT_FLAG_KEY) != 0;
        if (is_shown(codec, *data)) {
            packet.number = 0;
            has_times_ = has_times_ && data->pts != AV_NOPTS_VALUE;
        }
        packet.data = std::move(data);
        packets_.push_back(std::move(packet));
    });
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
