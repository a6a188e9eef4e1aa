// CRC-32 as gzip and ZIP have it (ITU-T V.42), and CRC-32C as stores have it (RFC 3720, 12.1).
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// `before` is the CRC of the bytes before them.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

// Only ISA-L computes it here.
#ifdef SHF_HAVE_ISAL
inline constexpr bool have_crc32c = true;
#else
inline constexpr bool have_crc32c = false;
#endif
// Call it where have_crc32c.
uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace shf
