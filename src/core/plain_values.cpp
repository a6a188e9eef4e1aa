#include "core/plain_values.h"

namespace shf {

namespace {

size_t big_endian(std::span<const uint8_t> bytes) {
    size_t number = 0;
    for (const uint8_t byte : bytes) number = number << 8 | byte;
    return number;
}

}  // namespace

std::optional<PlainHead> plain_head_of(std::span<const uint8_t> from) {
    using enum PlainHead::Kind;
    if (from.empty()) return std::nullopt;
    const uint8_t type = from[0];
    if (type < 0x80) return PlainHead{number, 1, 0, type};
    if (type >= 0xa0 && type <= 0xbf) return PlainHead{text, 1, type & uint64_t{0x1f}, 0};
    if (type >= 0xcc && type <= 0xd3) return PlainHead{number, 1, uint64_t{1} << (type & 3), 0};
    const bool is_bytes = type >= 0xc4 && type <= 0xc6;
    if (!is_bytes && !(type >= 0xd9 && type <= 0xdb)) return std::nullopt;
    const size_t size = 1 + (size_t{1} << (type - (is_bytes ? 0xc4 : 0xd9)));
    if (size > from.size()) return std::nullopt;
    return PlainHead{is_bytes ? bytes : text, size, big_endian(from.subspan(1, size - 1)), 0};
}

std::optional<PlainMapHead> plain_map_head_of(std::span<const uint8_t> from) {
    constexpr uint8_t short_map = 0x80, map_16 = 0xde, map_32 = 0xdf;
    if (from.empty()) return std::nullopt;
    if ((from[0] & 0xf0) == short_map) return PlainMapHead{1, from[0] & size_t{0x0f}};
    const size_t size = from[0] == map_16 ? 3 : 5;
    if ((from[0] != map_16 && from[0] != map_32) || size > from.size()) return std::nullopt;
    return PlainMapHead{size, big_endian(from.subspan(1, size - 1))};
}

}  // namespace shf
