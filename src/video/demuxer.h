// One stream of a file in memory, through libavformat.
#pragma once

#include "video/ffmpeg.h"
#include "video/video_end.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace shf {

struct FreePacket {
    void operator()(AVPacket* packet) const { ffmpeg().av_packet_free(&packet); }
};
using PacketPointer = std::unique_ptr<AVPacket, FreePacket>;

// Throws what an error number of FFmpeg is: Error(FORMAT) with `what`, the text of the number and
// what was logged, or std::bad_alloc.
[[noreturn]] void throw_ffmpeg(const FfmpegLog& log, const char* what, int error);

class Demuxer {
  public:
    // Borrows `file`, and reads its headers. Throws Error(UNSUPPORTED), FORMAT, std::bad_alloc.
    Demuxer(std::span<const uint8_t> file, VideoFormat format, const FfmpegLog& log);
    ~Demuxer();
    Demuxer(const Demuxer&) = delete;
    Demuxer& operator=(const Demuxer&) = delete;

    // Chooses the first stream of this type which is no picture on a cover; the packets of all
    // others are not even read. NULL when there is none. Throws Error(FORMAT) for one whose times
    // have no unit.
    AVStream* choose(AVMediaType type);
    // Hands over all packets of that stream, in the order in which they are decoded. Throws
    // Error(FORMAT), also when they are more bytes than the file can have; std::bad_alloc; what
    // `take` throws.
    void read(const FfmpegLog& log, const std::function<void(PacketPointer packet)>& take);

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

    Cursor cursor_;
    std::unique_ptr<AVIOContext, FreeInput> input_;
    std::unique_ptr<AVFormatContext, CloseFormat> format_;
    AVStream* stream_ = nullptr;
};

}  // namespace shf
