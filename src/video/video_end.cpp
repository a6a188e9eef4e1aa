#include "video/video_end.h"

#include "core/error.h"

#include <cstddef>
#include <string_view>

namespace shf {

VideoFormat check_video_end(std::span<const uint8_t> file) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (file.empty()) throw Error(SHF_E_FORMAT, "a video of 0 bytes", "write it again");
    const auto has = [&](size_t at, std::string_view what) {
        return text.size() >= at && text.substr(at).starts_with(what);
    };
    if (has(0, "\x1a\x45\xdf\xa3")) return VideoFormat::matroska;
    if (has(0, "RIFF") && has(8, "AVI ")) return VideoFormat::avi;
    for (const std::string_view box : {"ftyp", "moov", "mdat", "free", "skip", "wide"})
        if (has(4, box)) return VideoFormat::mp4;
    throw Error(SHF_E_UNSUPPORTED, "not a video that is known: it is no MP4, Matroska, WebM or AVI",
                "convert the video to one of these, or take the field as bytes");
}

}  // namespace shf
