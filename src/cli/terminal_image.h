// Images in the terminal, where it can show them.
#pragma once

#include <shardfeed.h>

#include <string>
#include <string_view>

namespace cli {

// How the terminal of standard output takes images: the graphics protocol of kitty, or the inline
// images of iTerm2. `none` for other terminals, and inside of tmux and screen.
enum class ImageProtocol { none, kitty, iterm };
ImageProtocol image_protocol();

// What makes the terminal show field `name`, an image, about twelve lines high; empty where it
// cannot be decoded.
std::string image_escape(ImageProtocol protocol, const shf_sample* sample, std::string_view name,
                         std::string_view bytes);

}  // namespace cli
