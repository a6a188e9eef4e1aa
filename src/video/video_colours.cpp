#include "video/video_colours.h"

#include "core/error.h"

#include <string>

namespace shf {

void FrameColours::prepare(const AVFrame& frame, uint32_t channels) {
    if (context_ && frame.width == width_ && frame.height == height_ && frame.format == format_ &&
        static_cast<int>(frame.colorspace) == matrix_ &&
        static_cast<int>(frame.color_range) == range_ && channels == channels_)
        return;
    const Ffmpeg& library = ffmpeg();
    const auto format = static_cast<AVPixelFormat>(frame.format);
    const AVPixelFormat rgb = channels == 4 ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
    // As PyAV, TorchCodec and decord have it: one colour for each 2 x 2 pixels of 4:2:0. With
    // interpolated colours (SWS_ACCURATE_RND, SWS_FULL_CHR_H_INT) it takes 40 times as long.
    context_.reset(library.sws_getContext(frame.width, frame.height, format, frame.width,
                                          frame.height, rgb, SWS_BILINEAR, nullptr, nullptr,
                                          nullptr));
    if (!context_) {
        const char* const name = library.av_get_pix_fmt_name(format);
        throw Error(SHF_E_UNSUPPORTED,
                    std::string("the pixels of this video (") + (name ? name : "unknown") +
                        ") cannot become red, green and blue",
                    "convert the video to yuv420p, or take the field as bytes");
    }
    // The numbers of ISO 23091-2 are those of libswscale for the matrices that it knows.
    const int* const matrix = library.sws_getCoefficients(frame.colorspace);
    const int is_full = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    constexpr int unchanged = 1 << 16;
    // It refuses where there is no matrix, as between kinds of RGB.
    library.sws_setColorspaceDetails(context_.get(), matrix, is_full, matrix, 1, 0, unchanged,
                                     unchanged);
    width_ = frame.width;
    height_ = frame.height;
    format_ = frame.format;
    matrix_ = static_cast<int>(frame.colorspace);
    range_ = static_cast<int>(frame.color_range);
    channels_ = channels;
}

void FrameColours::write(const AVFrame& frame, uint8_t* to, size_t stride, uint32_t channels) {
    prepare(frame, channels);
    uint8_t* const planes[4] = {to, nullptr, nullptr, nullptr};
    const int strides[4] = {static_cast<int>(stride), 0, 0, 0};
    const int rows = ffmpeg().sws_scale(context_.get(), frame.data, frame.linesize, 0, frame.height,
                                        planes, strides);
    if (rows != frame.height) throw Error(SHF_E_INTERNAL, "libswscale does not write all rows");
}

}  // namespace shf
