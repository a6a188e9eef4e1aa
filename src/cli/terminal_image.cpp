#include "cli/terminal_image.h"

#include "cli/base64.h"
#include "cli/environment.h"
#include "cli/field_preview.h"
#include "cli/image_header.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace cli {

namespace {

constexpr uint64_t shorter_side = 256;  // pixels of a picture that is sent uncompressed

// https://sw.kovidgoyal.net/kitty/graphics-protocol: pieces of at most 4096 letters.
std::string kitty(const std::string& format, std::string_view bytes) {
    constexpr size_t piece = 4096;
    const std::string letters = base64(bytes);
    std::string made;
    for (size_t at = 0; at < letters.size(); at += piece) {
        made += "\033_G";
        if (at == 0) made += "a=T,r=12,q=2," + format + ",";
        made += at + piece < letters.size() ? "m=1;" : "m=0;";
        made += letters.substr(at, piece) + "\033\\";
    }
    return made + "\n";
}

std::string kitty_pixels(const shf_sample* sample, std::string_view name,
                         const ImageHeader& header) {
    const bool is_large = std::min(header.width, header.height) > shorter_side;
    shf_array array = {};
    try {
        const Batch batch = decoded_field(
            sample, name,
            is_large ? "image/rgb8/resize=" + std::to_string(shorter_side) : "image/rgb8", array);
        return kitty(
            "f=24,s=" + std::to_string(array.shape[2]) + ",v=" + std::to_string(array.shape[1]),
            {static_cast<const char*>(array.data), array.size});
    } catch (const Failure&) {
        return {};
    }
}

}  // namespace

ImageProtocol image_protocol() {
    const std::string term = variable("TERM");
    const std::string program = variable("TERM_PROGRAM");
    if (::isatty(STDOUT_FILENO) != 1 || !variable("TMUX").empty() || term.starts_with("screen") ||
        term.starts_with("tmux") || term == "dumb")
        return ImageProtocol::none;
    if (!variable("KITTY_WINDOW_ID").empty() || term == "xterm-kitty" || program == "ghostty")
        return ImageProtocol::kitty;
    if (program == "iTerm.app" || program == "WezTerm" || program == "mintty")
        return ImageProtocol::iterm;
    return ImageProtocol::none;
}

std::string image_escape(ImageProtocol protocol, const shf_sample* sample, std::string_view name,
                         std::string_view bytes) {
    const auto header = image_header(bytes);
    if (!header) return {};
    if (protocol == ImageProtocol::kitty)
        return header->format == std::string_view("PNG") ? kitty("f=100", bytes)
                                                         : kitty_pixels(sample, name, *header);
    if (protocol == ImageProtocol::iterm)
        return "\033]1337;File=inline=1;height=12;size=" + std::to_string(bytes.size()) + ":" +
               base64(bytes) + "\a\n";
    return {};
}

}  // namespace cli
