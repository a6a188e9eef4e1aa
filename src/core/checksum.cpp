#include "core/checksum.h"

#ifdef SHF_HAVE_ISAL
#include <isa-l/crc.h>
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
#else
uint32_t crc32c(std::span<const uint8_t> /*bytes*/, uint32_t before) {
    return before;
}
#endif

}  // namespace shf
