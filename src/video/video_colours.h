// Frames as red, green and blue, through libswscale.
#pragma once

#include "video/ffmpeg.h"
#include "video/video_file.h"

#include <memory>

namespace shf {

// Of frames of one size and format, which it keeps tables for. With the matrix and range that a
// frame names; where it names none, those of ITU-R BT.601 in 16..235, as FFmpeg has it.
class FrameColours {
  public:
    // Throws as VideoFrame::write().
    void write(const AVFrame& frame, uint8_t* to, size_t stride, uint32_t channels);

  private:
    struct Free {
        void operator()(SwsContext* context) const { ffmpeg().sws_freeContext(context); }
    };

    void prepare(const AVFrame& frame, uint32_t channels);

    std::unique_ptr<SwsContext, Free> context_;
    int width_ = 0, height_ = 0, format_ = -1, matrix_ = 0, range_ = 0;
    uint32_t channels_ = 0;
};

}  // namespace shf
