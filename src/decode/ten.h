// TenBin, the arrays of tensorcom and WebDataset (.ten): chunks, in turn the header of an array and
// its elements. A chunk is the magic "~TenBin~", the length of its payload, the payload, and zeros
// up to a multiple of 64 bytes. Numbers are those of a little-endian machine.
#pragma once

#include "decode/decoder.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace shf {

// The array number `part`, from 0 on; without a number the only one. All chunks have to be there.
std::unique_ptr<Decoder> ten_decoder(std::optional<uint64_t> part, uint64_t max_decoded);

}  // namespace shf
