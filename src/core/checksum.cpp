#include "core/checksum.h"

#ifdef SHF_HAVE_ISAL
#include <isa-l/crc.h>
#else
#include <libdeflate.h>
#endif

namespace shf {

uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before) {
#ifdef SHF_HAVE_ISAL
    // Three times as fast as libdeflate's where both are there.
    return crc32_gzip_refl(before, bytes.data(), bytes.size());
#else
    return libdeflate_crc32(before, bytes.data(), bytes.size());
#endif
}

}  // namespace shf
