// CRC-32 as gzip and ZIP have it (ITU-T V.42).
#pragma once

#include <cstdint>
#include <span>

namespace shf {

uint32_t crc32(std::span<const uint8_t> bytes);

}  // namespace shf
