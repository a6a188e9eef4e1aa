// What the headers of a video promise.
#pragma once

#include "video/video_format.h"

#include <cstdint>
#include <span>
#include <string>

namespace shf {

// Looks at a whole file before FFmpeg does, which takes a file that is cut for a shorter one, and
// makes tables as long as a header says. Throws Error: FORMAT when the file ends before its headers
// say (of Matroska and AVI: unless the program that wrote it did not know where), or has tables of
// more samples than it can have; UNSUPPORTED for other formats.
VideoFormat check_video_end(std::span<const uint8_t> file);

// Throws Error(FORMAT) for a video that is damaged.
[[noreturn]] void bad_video(const std::string& cause);

}  // namespace shf
