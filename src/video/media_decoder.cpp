#include "video/media_decoder.h"

#include "core/error.h"
#include "video/demuxer.h"

#include <new>
#include <string>

namespace shf {

CodecPointer new_decoder(const AVStream& stream, const FfmpegLog& log) {
    const Ffmpeg& library = ffmpeg();
    const AVCodecParameters* const parameters = stream.codecpar;
    const AVCodec* const decoder = library.avcodec_find_decoder(parameters->codec_id);
    if (!decoder)
        throw Error(SHF_E_UNSUPPORTED,
                    std::string("the libavcodec of this system has no decoder for ") +
                        escape(library.avcodec_get_name(parameters->codec_id)),
                    parameters->codec_type == AVMEDIA_TYPE_AUDIO
                        ? "install one that has, convert the sound to AAC, or take the field as "
                          "bytes"
                        : "install one that has, convert the video to H.264, or take the field as "
                          "bytes");
    CodecPointer codec(library.avcodec_alloc_context3(decoder));
    if (!codec) throw std::bad_alloc();
    if (const int error = library.avcodec_parameters_to_context(codec.get(), parameters); error < 0)
        throw_ffmpeg(log, "its headers cannot be read", error);
    codec->thread_count = 1;
    codec->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
    return codec;
}

void start_decoder(AVCodecContext& codec, const FfmpegLog& log) {
    if (const int error = ffmpeg().avcodec_open2(&codec, nullptr, nullptr); error < 0)
        throw_ffmpeg(log, "its decoder does not start", error);
}

FramePointer new_frame() {
    FramePointer frame(ffmpeg().av_frame_alloc());
    if (!frame) throw std::bad_alloc();
    return frame;
}

}  // namespace shf
