#include "image/exif.h"

#include <algorithm>
#include <cstddef>

namespace shf {

namespace {

constexpr uint32_t as_stored = 1;
constexpr uint32_t tag_orientation = 0x112, type_short = 3;
constexpr size_t entry_size = 12;

// Numbers of a TIFF structure (TIFF 6.0 section 2), in the byte order that its header names.
struct Tiff {
    std::span<const uint8_t> bytes;
    bool big_endian;

    [[nodiscard]] bool has(size_t at, size_t count) const {
        return at <= bytes.size() && count <= bytes.size() - at;
    }
    [[nodiscard]] uint32_t number(size_t at, size_t size) const {
        uint32_t value = 0;
        for (size_t i = 0; i < size; ++i)
            value = value << 8 | bytes[at + (big_endian ? i : size - 1 - i)];
        return value;
    }
};

}  // namespace

uint32_t exif_orientation(std::span<const uint8_t> exif) noexcept {
    static constexpr uint8_t prefix[] = {'E', 'x', 'i', 'f', 0, 0};
    if (exif.size() >= sizeof prefix && std::equal(prefix, prefix + sizeof prefix, exif.begin()))
        exif = exif.subspan(sizeof prefix);
    if (exif.size() < 8 || exif[0] != exif[1] || (exif[0] != 'I' && exif[0] != 'M'))
        return as_stored;
    const Tiff tiff{exif, exif[0] == 'M'};
    if (tiff.number(2, 2) != 42) return as_stored;
    const size_t directory = tiff.number(4, 4);
    if (!tiff.has(directory, 2)) return as_stored;
    const uint32_t entries = tiff.number(directory, 2);
    for (uint32_t i = 0; i < entries; ++i) {
        const size_t entry = directory + 2 + i * entry_size;  // below 2^32 + 2^20
        if (!tiff.has(entry, entry_size)) return as_stored;
        if (tiff.number(entry, 2) != tag_orientation) continue;
        const uint32_t value = tiff.number(entry + 8, 2);
        return tiff.number(entry + 2, 2) == type_short && value >= 1 && value <= 8 ? value
                                                                                   : as_stored;
    }
    return as_stored;
}

}  // namespace shf
