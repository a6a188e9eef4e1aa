#include "zip/zip_records.h"

#include "core/error.h"

#include <algorithm>
#include <concepts>

namespace shf {

namespace {

constexpr uint64_t full16 = 0xffff, full32 = 0xffffffff;
constexpr uint16_t plain_version = 20, zip64_version = 45;  // 4.4.3.2

template <std::unsigned_integral Number>
void put(std::string& out, Number number) {
    for (size_t i = 0; i < sizeof(Number); ++i)
        out += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
}

// Of what does not fit, the mark that the value is in the 64-bit field.
uint16_t low16(uint64_t value) {
    return static_cast<uint16_t>(std::min(value, full16));
}
uint32_t low32(uint64_t value) {
    return static_cast<uint32_t>(std::min(value, full32));
}

uint16_t flags_of(std::string_view name) {
    const bool ascii = std::all_of(name.begin(), name.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    return !ascii && is_utf8(name) ? 1U << 11 : 0;
}

// From the version to the CRC: the same in both headers.
void put_common(std::string& out, const ZipRecord& record, bool zip64) {
    put(out, zip64 ? zip64_version : plain_version);
    put(out, flags_of(record.name));
    put<uint16_t>(out, record.deflated ? 8 : 0);
    put<uint16_t>(out, 0);               // 00:00:00
    put<uint16_t>(out, (1U << 5) | 1U);  // 1980-01-01
    put(out, record.crc);
}

}  // namespace

void append_local_header(std::string& out, const ZipRecord& record) {
    // Here both sizes have a 64-bit field when one of them needs it (4.5.3).
    const bool zip64 = record.size >= full32 || record.stored >= full32;
    put<uint32_t>(out, 0x04034b50);
    put_common(out, record, zip64);
    put<uint32_t>(out, zip64 ? 0xffffffff : low32(record.stored));
    put<uint32_t>(out, zip64 ? 0xffffffff : low32(record.size));
    put(out, static_cast<uint16_t>(record.name.size()));
    put<uint16_t>(out, zip64 ? 20 : 0);
    out += record.name;
    if (!zip64) return;
    put<uint16_t>(out, 1);
    put<uint16_t>(out, 16);
    put(out, record.size);
    put(out, record.stored);
}

void append_central_header(std::string& out, const ZipRecord& record) {
    std::string extra;
    for (const uint64_t value : {record.size, record.stored, record.offset})
        if (value >= full32) put(extra, value);
    put<uint32_t>(out, 0x02014b50);
    put<uint16_t>(out, 3U << 8 | (extra.empty() ? plain_version : zip64_version));
    put_common(out, record, !extra.empty());
    put(out, low32(record.stored));
    put(out, low32(record.size));
    put(out, static_cast<uint16_t>(record.name.size()));
    put(out, static_cast<uint16_t>(extra.empty() ? 0 : extra.size() + 4));
    put<uint16_t>(out, 0);               // comment
    put<uint16_t>(out, 0);               // disk
    put<uint16_t>(out, 0);               // internal attributes
    put<uint32_t>(out, 0100644U << 16);  // external ones
    put(out, low32(record.offset));
    out += record.name;
    if (extra.empty()) return;
    put<uint16_t>(out, 1);
    put(out, static_cast<uint16_t>(extra.size()));
    out += extra;
}

void append_zip_end(std::string& out, uint64_t entries, uint64_t size, uint64_t offset) {
    if (entries >= full16 || size >= full32 || offset >= full32) {
        put<uint32_t>(out, 0x06064b50);
        put<uint64_t>(out, 44);  // what follows in this record
        put<uint16_t>(out, 3U << 8 | zip64_version);
        put(out, zip64_version);
        put<uint32_t>(out, 0);
        put<uint32_t>(out, 0);
        put(out, entries);
        put(out, entries);
        put(out, size);
        put(out, offset);
        put<uint32_t>(out, 0x07064b50);
        put<uint32_t>(out, 0);
        put(out, offset + size);  // of the record above
        put<uint32_t>(out, 1);
    }
    put<uint32_t>(out, 0x06054b50);
    put<uint16_t>(out, 0);
    put<uint16_t>(out, 0);
    put(out, low16(entries));
    put(out, low16(entries));
    put(out, low32(size));
    put(out, low32(offset));
    put<uint16_t>(out, 0);  // comment
}

}  // namespace shf
