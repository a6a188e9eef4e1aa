#include "image/image_codecs.h"

#include "image/webp.h"

#include <png.h>

#include <string>

namespace shf {

const char* image_codec_version(std::string_view format) {
    if (format == "jpeg") return "libjpeg-turbo " SHF_JPEG_VERSION;
    if (format == "png") {
        static const std::string text = std::string("libpng ") + png_get_libpng_ver(nullptr);
        return text.c_str();
    }
    return format == "webp" ? webp_version() : nullptr;
}

}  // namespace shf
