#include "core/checksum.h"

#ifdef SHF_HAVE_ISAL
#include <isa-l/crc.h>
#ifdef SHF_HAVE_CRC64NVME
#include <isa-l/crc64.h>
#endif
#else
#include <libdeflate.h>
#endif

#include <algorithm>
#include <cstddef>

namespace shf {

uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before) {
#ifdef SHF_HAVE_ISAL
    // Three times as fast as libdeflate's where both are there.
    return crc32_gzip_refl(before, bytes.data(), bytes.size());
#else
    return libdeflate_crc32(before, bytes.data(), bytes.size());
#endif
}

#ifdef SHF_HAVE_ISAL
uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t before) {
    constexpr size_t most = size_t{1} << 30;  // lengths are of int there
    uint32_t crc = ~before;
    while (!bytes.empty()) {
        const auto now = bytes.first(std::min(bytes.size(), most));
        crc = crc32_iscsi(const_cast<uint8_t*>(now.data()), static_cast<int>(now.size()), crc);
        bytes = bytes.subspan(now.size());
    }
    return ~crc;
}

// Without the inversions before and behind that ISA-L makes.
uint32_t crc_of_ogg(std::span<const uint8_t> bytes, uint32_t before) {
    return ~crc32_ieee(~before, bytes.data(), bytes.size());
}
#else
uint32_t crc32c(std::span<const uint8_t> /*bytes*/, uint32_t before) {
    return before;
}

uint32_t crc_of_ogg(std::span<const uint8_t> /*bytes*/, uint32_t before) {
    return before;
}
#endif

#ifdef SHF_HAVE_CRC64NVME
uint64_t crc64nvme(std::span<const uint8_t> bytes, uint64_t before) {
    return crc64_rocksoft_refl(before, bytes.data(), bytes.size());
}
#else
uint64_t crc64nvme(std::span<const uint8_t> /*bytes*/, uint64_t before) {
    return before;
}
#endif

}  // namespace shf
