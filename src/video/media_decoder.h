// A decoder of libavcodec for one stream.
#pragma once

#include "video/ffmpeg.h"

#include <memory>

namespace shf {

struct FreeCodec {
    void operator()(AVCodecContext* codec) const { ffmpeg().avcodec_free_context(&codec); }
};
struct FreeFrame {
    void operator()(AVFrame* frame) const { ffmpeg().av_frame_free(&frame); }
};
using CodecPointer = std::unique_ptr<AVCodecContext, FreeCodec>;
using FramePointer = std::unique_ptr<AVFrame, FreeFrame>;

// One thread, and damage is an error. More may be set before start_decoder(). Both throw Error:
// UNSUPPORTED (no such decoder in the libavcodec of this system), FORMAT; and std::bad_alloc.
CodecPointer new_decoder(const AVStream& stream, const FfmpegLog& log);
void start_decoder(AVCodecContext& codec, const FfmpegLog& log);
FramePointer new_frame();

}  // namespace shf
