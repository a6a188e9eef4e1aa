#include "video/ffmpeg.h"

#include "core/dynamic_library.h"
#include "core/error.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace shf {

namespace {

constexpr const char* install_ffmpeg =
    "install libavformat" AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR) " and libswscale" AV_STRINGIFY(
        LIBSWSCALE_VERSION_MAJOR) " (Debian, Ubuntu) or libavformat-free and libswscale-free (Fedora) "
    "in the versions that this library was built with, or take the field as bytes";

thread_local FfmpegLog* log_of_thread = nullptr;

void log_ffmpeg(void* of, int level, const char* format, va_list arguments) {
    if (!log_of_thread)
        ffmpeg().av_log_default_callback(of, level, format, arguments);
    else if (level <= AV_LOG_ERROR)
        log_of_thread->add(format, arguments);
}

// The soname of the version whose headers this build has: structs of others are others.
#define SHF_SONAME(name, version) "lib" name ".so." AV_STRINGIFY(version)
#define SHF_FIND(function) library.find(#function, ffmpeg.function)

Ffmpeg load_ffmpeg() {
    Ffmpeg ffmpeg;
    {
        const DynamicLibrary library("libavutil", SHF_SONAME("avutil", LIBAVUTIL_VERSION_MAJOR),
                                     install_ffmpeg);
        SHF_FIND(av_dict_free);
        SHF_FIND(av_dict_set);
        SHF_FIND(av_frame_alloc);
        SHF_FIND(av_frame_free);
        SHF_FIND(av_frame_unref);
        SHF_FIND(av_free);
        SHF_FIND(av_get_pix_fmt_name);
        SHF_FIND(av_log_default_callback);
        SHF_FIND(av_log_set_callback);
        SHF_FIND(av_malloc);
        SHF_FIND(av_strerror);
    }
    {
        const DynamicLibrary library("libavcodec", SHF_SONAME("avcodec", LIBAVCODEC_VERSION_MAJOR),
                                     install_ffmpeg);
        SHF_FIND(av_packet_alloc);
        SHF_FIND(av_packet_free);
        SHF_FIND(avcodec_alloc_context3);
        SHF_FIND(avcodec_find_decoder);
        SHF_FIND(avcodec_flush_buffers);
        SHF_FIND(avcodec_free_context);
        SHF_FIND(avcodec_get_name);
        SHF_FIND(avcodec_open2);
        SHF_FIND(avcodec_parameters_to_context);
        SHF_FIND(avcodec_receive_frame);
        SHF_FIND(avcodec_send_packet);
        SHF_FIND(avcodec_version);
    }
    {
        const DynamicLibrary library(
            "libavformat", SHF_SONAME("avformat", LIBAVFORMAT_VERSION_MAJOR), install_ffmpeg);
        SHF_FIND(av_find_input_format);
        SHF_FIND(av_read_frame);
        SHF_FIND(avformat_alloc_context);
        SHF_FIND(avformat_close_input);
        SHF_FIND(avformat_open_input);
        SHF_FIND(avio_alloc_context);
        SHF_FIND(avio_context_free);
    }
    {
        const DynamicLibrary library("libswscale", SHF_SONAME("swscale", LIBSWSCALE_VERSION_MAJOR),
                                     install_ffmpeg);
        SHF_FIND(sws_freeContext);
        SHF_FIND(sws_getCoefficients);
        SHF_FIND(sws_getContext);
        SHF_FIND(sws_scale);
        SHF_FIND(sws_setColorspaceDetails);
    }
    ffmpeg.av_log_set_callback(log_ffmpeg);
    return ffmpeg;
}

#undef SHF_FIND
#undef SHF_SONAME

}  // namespace

const Ffmpeg& ffmpeg() {
    static const Ffmpeg functions = load_ffmpeg();
    return functions;
}

FfmpegLog::FfmpegLog() : outer_(log_of_thread) {
    log_of_thread = this;
}

FfmpegLog::~FfmpegLog() {
    log_of_thread = outer_;
}

void FfmpegLog::add(const char* format, va_list arguments) {
    char line[256];
    const int length = std::vsnprintf(line, sizeof line, format, arguments);
    if (length <= 0) return;
    std::string_view text(line, std::min(static_cast<size_t>(length), sizeof line - 1));
    while (text.ends_with('\n')) text.remove_suffix(1);
    try {
        if (!text.empty()) latest_ = text;
    } catch (...) {  // nothing is thrown through C; the error is known without its text
    }
}

std::string FfmpegLog::with_cause(const std::string& what) const {
    return latest_.empty() ? what : what + " (FFmpeg: " + escape(latest_) + ')';
}

const char* ffmpeg_version() noexcept {
    try {
        static const std::string text = [] {
            const unsigned version = ffmpeg().avcodec_version();
            return "libavcodec " + std::to_string(AV_VERSION_MAJOR(version)) + '.' +
                   std::to_string(AV_VERSION_MINOR(version)) + '.' +
                   std::to_string(AV_VERSION_MICRO(version));
        }();
        return text.c_str();
    } catch (...) {
        return nullptr;
    }
}

}  // namespace shf
