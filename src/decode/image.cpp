#include "decode/image.h"
#include "core/error.h"
namespace shf {
struct ImageScratch {};
DecodeScratch::DecodeScratch() = default;
DecodeScratch::~DecodeScratch() = default;
std::unique_ptr<Decoder> image_decoder(const ImageOptions&, uint64_t) {
    throw Error(SHF_E_UNSUPPORTED, "no images");
}
}  // namespace shf
