// CRC-32 as gzip and ZIP have it (ITU-T V.42).
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// `before` is the CRC of the bytes before them.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace shf
