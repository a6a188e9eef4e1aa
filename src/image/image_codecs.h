// The libraries that decode images.
#pragma once

#include <string_view>

namespace shf {

// The library that decodes "jpeg", "png" or "webp", such as "libpng 1.6.39"; NULL for a format that
// is unknown or was left out of the build.
const char* image_codec_version(std::string_view format);

}  // namespace shf
