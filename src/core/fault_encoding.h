// Faults as bytes, for another process.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shf {

std::vector<uint8_t> encode_fault(const Fault& fault);
// Throws Error(FORMAT, INTEGRITY, UNSUPPORTED) for anything that encode_fault() did not make.
Fault decode_fault(std::span<const uint8_t> bytes);

}  // namespace shf
