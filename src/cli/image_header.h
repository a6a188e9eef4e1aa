// What the header of an image says.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cli {

struct ImageHeader {
    const char* format;  // "JPEG", "PNG", "WebP", "GIF", "PNM"
    uint64_t width;
    uint64_t height;
};

// Nothing where the bytes are no image of these formats, or end before they say how large it is.
// The pixels are not looked at.
std::optional<ImageHeader> image_header(std::string_view bytes);

}  // namespace cli
