// A build without libjxl.
#include "image/jxl.h"

namespace shf {

ImageHeader read_jxl_header(std::span<const uint8_t> /*file*/, bool /*orient*/) {
    image_left_out("JPEG XL", "libjxl");
}

void decode_jxl(std::span<const uint8_t> /*file*/, const ImageHeader& /*header*/,
                const Pixels& /*to*/) {
    image_left_out("JPEG XL", "libjxl");
}

const char* jxl_version() noexcept {
    return nullptr;
}

}  // namespace shf
