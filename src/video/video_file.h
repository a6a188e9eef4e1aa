// One video in memory, decoded by FFmpeg.
#pragma once

#include "video/video_plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace shf {

struct VideoHeader {
    uint32_t width = 0, height = 0;  // as stored, both above 0
    uint32_t orientation = 1;        // as EXIF counts them, 1 to 8: how it is to be turned
};

// A frame that was decoded.
class VideoFrame {
  public:
    VideoFrame(uint32_t width, uint32_t height) : width(width), height(height) {}
    virtual ~VideoFrame() = default;

    const uint32_t width, height;
    // Writes 3 channels (red, green, blue) or 4 (with alpha) of 8 bits each. The rows lie `stride`
    // bytes apart, and hold a multiple of `whole_pixels` of them. Throws Error: FORMAT,
    // UNSUPPORTED.
    virtual void write(uint8_t* to, size_t stride, uint32_t channels) const = 0;

    static constexpr uint32_t whole_pixels = 16;
};

// One thread at a time.
class VideoFile {
  public:
    // Borrows `file`. No frame may have more than `most_pixels`. Throws Error: FORMAT (damaged, or
    // without the end that its headers promise), LIMIT, UNSUPPORTED (another format, a codec that
    // this FFmpeg has not, or no FFmpeg).
    VideoFile(std::span<const uint8_t> file, uint64_t most_pixels);
    ~VideoFile();
    VideoFile(const VideoFile&) = delete;
    VideoFile& operator=(const VideoFile&) = delete;

    [[nodiscard]] const VideoHeader& header() const { return header_; }

    // Reads the packets of all frames, and keeps them. Throws Error(FORMAT), std::bad_alloc.
    const VideoTimes& times();

    // Decodes the frames with these numbers, which ascend, and gives each to `take`. After times().
    // What is not needed for them is not decoded. Throws Error: FORMAT (damage that the decoder
    // sees, a frame that does not come out or has another size), and what `take` throws.
    void decode(std::span<const uint64_t> wanted,
                const std::function<void(uint64_t number, const VideoFrame& frame)>& take);

  private:
    struct Decoder;  // of FFmpeg
    void find_size();

    std::unique_ptr<Decoder> decoder_;
    VideoHeader header_;
};

// "libavcodec 59.37.100"; NULL where the build or the system has none. Static.
const char* video_library();

}  // namespace shf
