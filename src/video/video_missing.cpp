// A build without the libraries of FFmpeg.
#include "core/error.h"
#include "video/clip_start.h"
#include "video/sound_track.h"
#include "video/video_file.h"

namespace shf {

namespace {

[[noreturn]] void left_out() {
    throw Error(
        SHF_E_UNSUPPORTED, "videos: this library was built without libavformat and libswscale",
        "install the -dev packages of FFmpeg and build it again, or take the field as bytes");
}

}  // namespace

struct VideoFile::Decoder {};

VideoFile::VideoFile(std::span<const uint8_t> /*file*/, uint64_t /*most_pixels*/) {
    left_out();
}
VideoFile::~VideoFile() = default;
const VideoTimes& VideoFile::times() {
    throw Error(SHF_E_INTERNAL, "no video is open");
}
void VideoFile::decode(
    std::span<const uint64_t> /*wanted*/,
    const std::function<void(uint64_t number, const VideoFrame& frame)>& /*take*/) {}

double clip_start(std::span<const uint8_t> /*file*/, const VideoOptions& /*options*/,
                  uint64_t /*random*/) {
    left_out();
}

struct SoundTrack::Decoder {};

SoundTrack::SoundTrack(std::span<const uint8_t> /*file*/, VideoFormat /*format*/,
                       uint64_t /*most_numbers*/) {
    throw Error(SHF_E_UNSUPPORTED,
                "sounds in MP4, Matroska, WebM and AVI, and Vorbis: this library was built without "
                "libavformat and libswscale",
                "install the -dev packages of FFmpeg and build it again, or take the field as "
                "bytes");
}
SoundTrack::~SoundTrack() = default;
void SoundTrack::seek(uint64_t /*frame*/) {}
void SoundTrack::read(std::span<float> /*numbers*/) {}
void SoundTrack::read(std::span<int16_t> /*numbers*/) {}

const char* video_library() {
    return nullptr;
}

}  // namespace shf
