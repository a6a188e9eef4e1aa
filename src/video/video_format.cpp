#include "video/video_format.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace shf {

std::optional<VideoFormat> video_format(std::span<const uint8_t> file) {
    const std::string_view first(reinterpret_cast<const char*>(file.data()),
                                 std::min<size_t>(file.size(), 12));
    if (first.starts_with("\x1a\x45\xdf\xa3")) return VideoFormat::matroska;
    if (first.size() < 8) return std::nullopt;
    if (first.starts_with("RIFF") && first.substr(8) == "AVI ") return VideoFormat::avi;
    for (const std::string_view box : {"ftyp", "moov", "mdat", "free", "skip", "wide"})
        if (first.substr(4, 4) == box) return VideoFormat::mp4;
    return std::nullopt;
}

}  // namespace shf
