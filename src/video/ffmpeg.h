// The libraries of FFmpeg, which are loaded when something is decoded with them: they need a
// hundred others.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <string>

namespace shf {

// Their functions, under their own names.
struct Ffmpeg {
    decltype(&::av_dict_free) av_dict_free;
    decltype(&::av_dict_set) av_dict_set;
    decltype(&::av_frame_alloc) av_frame_alloc;
    decltype(&::av_frame_free) av_frame_free;
    decltype(&::av_frame_unref) av_frame_unref;
    decltype(&::av_free) av_free;
    decltype(&::av_get_pix_fmt_name) av_get_pix_fmt_name;
    decltype(&::av_log_default_callback) av_log_default_callback;
    decltype(&::av_log_set_callback) av_log_set_callback;
    decltype(&::av_malloc) av_malloc;
    decltype(&::av_strerror) av_strerror;

    decltype(&::av_packet_alloc) av_packet_alloc;
    decltype(&::av_packet_free) av_packet_free;
    decltype(&::avcodec_alloc_context3) avcodec_alloc_context3;
    decltype(&::avcodec_find_decoder) avcodec_find_decoder;
    decltype(&::avcodec_flush_buffers) avcodec_flush_buffers;
    decltype(&::avcodec_free_context) avcodec_free_context;
    decltype(&::avcodec_get_name) avcodec_get_name;
    decltype(&::avcodec_open2) avcodec_open2;
    decltype(&::avcodec_parameters_to_context) avcodec_parameters_to_context;
    decltype(&::avcodec_receive_frame) avcodec_receive_frame;
    decltype(&::avcodec_send_packet) avcodec_send_packet;
    decltype(&::avcodec_version) avcodec_version;

    decltype(&::av_find_input_format) av_find_input_format;
    decltype(&::av_read_frame) av_read_frame;
    decltype(&::avformat_alloc_context) avformat_alloc_context;
    decltype(&::avformat_close_input) avformat_close_input;
    decltype(&::avformat_open_input) avformat_open_input;
    decltype(&::avio_alloc_context) avio_alloc_context;
    decltype(&::avio_context_free) avio_context_free;

    decltype(&::sws_freeContext) sws_freeContext;
    decltype(&::sws_getCoefficients) sws_getCoefficients;
    decltype(&::sws_getContext) sws_getContext;
    decltype(&::sws_scale) sws_scale;
    decltype(&::sws_setColorspaceDetails) sws_setColorspaceDetails;
};

// Loads them at the first call, with the versions of the headers of this build. Throws
// Error(UNSUPPORTED). They are never unloaded. Any thread.
const Ffmpeg& ffmpeg();

// While it lives, what FFmpeg logs in this thread as an error is kept here instead of printed. The
// log of FFmpeg belongs to the whole process: what other threads and programs log goes where FFmpeg
// itself puts it.
class FfmpegLog {
  public:
    FfmpegLog();
    ~FfmpegLog();
    FfmpegLog(const FfmpegLog&) = delete;
    FfmpegLog& operator=(const FfmpegLog&) = delete;

    // `what`, and the latest error in parentheses.
    [[nodiscard]] std::string with_cause(const std::string& what) const;
    void add(const char* format, va_list arguments);

  private:
    FfmpegLog* const outer_;
    std::string latest_;
};

// "libavcodec 59.37.100"; NULL when this system has none. Static.
const char* ffmpeg_version() noexcept;

}  // namespace shf
