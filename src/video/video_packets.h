// The packets of the video in a file, through libavformat.
#pragma once

#include "video/demuxer.h"
#include "video/video_plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shf {

struct VideoPacket {
    static constexpr int64_t no_number = -1;

    PacketPointer data;
    // Of the frame that it becomes, in order of time; no_number when none is to be seen.
    int64_t number = no_number;
    bool is_key = false;
};

class VideoPackets {
  public:
    // Borrows `file`. Throws as VideoFile does.
    VideoPackets(std::span<const uint8_t> file, const FfmpegLog& log);
    ~VideoPackets();
    VideoPackets(const VideoPackets&) = delete;
    VideoPackets& operator=(const VideoPackets&) = delete;

    [[nodiscard]] const AVStream& stream() const { return *stream_; }

    // Reads all. Throws Error(FORMAT), std::bad_alloc.
    void read(const FfmpegLog& log);
    // After read(), in the order in which they are decoded, from the first key frame on.
    [[nodiscard]] std::span<VideoPacket> packets() { return packets_; }
    [[nodiscard]] std::span<const VideoPacket> packets() const { return packets_; }
    [[nodiscard]] const VideoTimes& times() const { return times_; }
    // Whether each packet says when it is shown. Else frames have the numbers in which they come
    // out.
    [[nodiscard]] bool has_times() const { return has_times_; }
    // Where the packet of a frame is.
    [[nodiscard]] size_t place_of(uint64_t number) const { return places_[number]; }
    // How many frames are decoded before one that is shown before them.
    [[nodiscard]] int reordered() const { return reordered_; }

  private:
    void drop_what_was_cut();
    void number();
    void number_by_place();
    void find_places();

    Demuxer demuxer_;
    AVStream* const stream_;
    std::vector<VideoPacket> packets_;
    std::vector<size_t> places_;
    VideoTimes times_;
    bool has_times_ = true;
    int reordered_ = 0;
};

}  // namespace shf
