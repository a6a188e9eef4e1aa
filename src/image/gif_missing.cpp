// A build without giflib.
#include "image/gif.h"

namespace shf {

ImageHeader read_gif_header(std::span<const uint8_t> /*file*/, bool /*orient*/) {
    image_left_out("GIF", "giflib");
}

void decode_gif(std::span<const uint8_t> /*file*/, const ImageHeader& /*header*/,
                const Pixels& /*to*/) {
    image_left_out("GIF", "giflib");
}

const char* gif_version() noexcept {
    return nullptr;
}

}  // namespace shf
