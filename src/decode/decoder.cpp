#include "decode/decoder.h"

#include "decode/audio_scratch.h"
#include "decode/field_unpacker.h"
#include "image/image_scratch.h"

namespace shf {

DecodeScratch::DecodeScratch() = default;
DecodeScratch::~DecodeScratch() = default;

}  // namespace shf
