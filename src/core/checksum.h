// CRC-32 as gzip and ZIP have it (ITU-T V.42), CRC-32C as stores have it (RFC 3720, 12.1),
// CRC-64/NVME as S3 has it (NVM Command Set Specification, 5.2.1.3.4), and the CRC of pages of Ogg
// (RFC 3533, 6).
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// `before` is the CRC of the bytes before them.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

// Only ISA-L computes these here.
#ifdef SHF_HAVE_ISAL
inline constexpr bool have_crc32c = true, have_crc_of_ogg = true;
#else
inline constexpr bool have_crc32c = false, have_crc_of_ogg = false;
#endif
// ISA-L since 2.31.
#ifdef SHF_HAVE_CRC64NVME
inline constexpr bool have_crc64nvme = true;
#else
inline constexpr bool have_crc64nvme = false;
#endif
// Call it where have_crc64nvme.
uint64_t crc64nvme(std::span<const uint8_t> bytes, uint64_t before = 0);
// Call it where have_crc32c.
uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t before = 0);
// Call it where have_crc_of_ogg.
uint32_t crc_of_ogg(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace shf
