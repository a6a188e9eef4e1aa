// Numbers as ZIP files have them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace shf {

template <typename Number>
Number little_endian(const uint8_t* bytes) {
    Number number = 0;
    if constexpr (std::endian::native == std::endian::little) {
        std::memcpy(&number, bytes, sizeof number);
    } else {
        for (size_t i = sizeof number; i-- > 0;)
            number = static_cast<Number>(static_cast<uint64_t>(number) << 8 | bytes[i]);
    }
    return number;
}

inline uint16_t le16(const uint8_t* bytes) {
    return little_endian<uint16_t>(bytes);
}
inline uint32_t le32(const uint8_t* bytes) {
    return little_endian<uint32_t>(bytes);
}
inline uint64_t le64(const uint8_t* bytes) {
    return little_endian<uint64_t>(bytes);
}

}  // namespace shf
