// A build without the libraries of FFmpeg.
#include "core/error.h"
#include "video/video_file.h"

namespace shf {

struct VideoFile::Decoder {};

VideoFile::VideoFile(std::span<const uint8_t> /*file*/, uint64_t /*most_pixels*/) {
    throw Error(
        SHF_E_UNSUPPORTED, "videos: this library was built without libavformat and libswscale",
        "install the -dev packages of FFmpeg and build it again, or take the field as bytes");
}
VideoFile::~VideoFile() = default;
const VideoTimes& VideoFile::times() {
    throw Error(SHF_E_INTERNAL, "no video is open");
}
void VideoFile::decode(
    std::span<const uint64_t> /*wanted*/,
    const std::function<void(uint64_t number, const VideoFrame& frame)>& /*take*/) {}

const char* video_library() {
    return nullptr;
}

}  // namespace shf
