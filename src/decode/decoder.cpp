#include "decode/decoder.h"

#include "image/image_scratch.h"

namespace shf {

DecodeScratch::DecodeScratch() = default;
DecodeScratch::~DecodeScratch() = default;

}  // namespace shf
