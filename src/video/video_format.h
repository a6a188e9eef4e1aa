// Which format the first bytes of a video, or of a sound in the same container, say it has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace shf {

// Ogg: of sounds alone.
enum class VideoFormat : uint8_t { mp4, matroska, avi, ogg };

// Never Ogg.
std::optional<VideoFormat> video_format(std::span<const uint8_t> file);

}  // namespace shf
