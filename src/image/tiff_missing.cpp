// A build without libtiff.
#include "image/tiff.h"

namespace shf {

ImageHeader read_tiff_header(std::span<const uint8_t> /*file*/, bool /*orient*/) {
    image_left_out("TIFF", "libtiff");
}

void decode_tiff(std::span<const uint8_t> /*file*/, const ImageHeader& /*header*/,
                 const Pixels& /*to*/) {
    image_left_out("TIFF", "libtiff");
}

const char* tiff_version() noexcept {
    return nullptr;
}

}  // namespace shf
