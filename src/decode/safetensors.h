// Files of the package safetensors: the length of a header, the header in JSON, which says of each
// tensor its name, dtype, shape and place, and the elements of all tensors without gaps.
#pragma once

#include "decode/decoder.h"

#include <cstdint>
#include <memory>
#include <string>

namespace shf {

// The tensor of this name; without a name the only one.
std::unique_ptr<Decoder> safetensors_decoder(std::string tensor, uint64_t max_decoded);

}  // namespace shf
