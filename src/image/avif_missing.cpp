// A build without libavif.
#include "image/avif.h"

namespace shf {

ImageHeader read_avif_header(std::span<const uint8_t> /*file*/, bool /*orient*/) {
    image_left_out("AVIF", "libavif");
}

void decode_avif(std::span<const uint8_t> /*file*/, const ImageHeader& /*header*/,
                 const Pixels& /*to*/) {
    image_left_out("AVIF", "libavif");
}

const char* avif_version() noexcept {
    return nullptr;
}

}  // namespace shf
