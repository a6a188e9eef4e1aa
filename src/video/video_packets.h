// The packets of the video in a file, through libavformat.
#pragma once

#include "video/ffmpeg.h"
#include "video/video_end.h"
#include "video/video_plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shf {

struct FreePacket {
    void operator()(AVPacket* packet) const { ffmpeg().av_packet_free(&packet); }
};

struct VideoPacket {
    static constexpr int64_t no_number = -1;

    std::unique_ptr<AVPacket, FreePacket> data;
    // Of the frame that it becomes, in order of time; no_number when none is to be seen.
    int64_t number = no_number;
    bool is_key = false;
};

// Throws what an error number of FFmpeg is: Error(FORMAT) with `what`, the text of the number and
// what was logged, or std::bad_alloc.
[[noreturn]] void throw_ffmpeg(const FfmpegLog& log, const char* what, int error);

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
    struct Cursor {
        std::span<const uint8_t> bytes;
        int64_t at = 0;
    };
    struct FreeInput {
        void operator()(AVIOContext* input) const;
    };
    struct CloseFormat {
        void operator()(AVFormatContext* format) const { ffmpeg().avformat_close_input(&format); }
    };

    static int read_bytes(void* cursor, uint8_t* to, int count);
    static int64_t seek_bytes(void* cursor, int64_t offset, int whence);
    void open(VideoFormat format, const FfmpegLog& log);
    void choose_stream();
    void drop_what_was_cut();
    void number();
    void number_by_place();
    void find_places();

    Cursor cursor_;
    std::unique_ptr<AVIOContext, FreeInput> input_;
    std::unique_ptr<AVFormatContext, CloseFormat> format_;
    AVStream* stream_ = nullptr;
    std::vector<VideoPacket> packets_;
    std::vector<size_t> places_;
    VideoTimes times_;
    bool has_times_ = true;
    int reordered_ = 0;
};

}  // namespace shf
