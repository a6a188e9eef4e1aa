// Builds ZIP files record by record, broken ones included: every record is made as a sound writer
// would, and each test changes the fields it is about. The format: PKWARE APPNOTE.TXT 6.3.10,
// section 4.3.
#pragma once

#include "core/checksum.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

using namespace std::string_literals;

// `width` bytes, little-endian.
inline std::string le(uint64_t value, size_t width) {
    std::string out;
    for (size_t i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 255);
    return out;
}
inline std::string le16(uint64_t value) {
    return le(value, 2);
}
inline std::string le32(uint64_t value) {
    return le(value, 4);
}
inline std::string le64(uint64_t value) {
    return le(value, 8);
}

inline uint32_t crc_of(std::string_view bytes) {
    return shf::crc32({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// An extra field.
inline std::string extra(uint16_t id, std::string_view body) {
    return le16(id) + le16(body.size()) + std::string(body);
}
inline std::string zip64_extra(std::string_view values) {
    return extra(0x0001, values);
}
// The Info-ZIP Unicode path field for an entry with this raw name.
inline std::string unicode_extra(std::string_view raw, std::string_view utf8) {
    return extra(0x7075, "\1" + le32(crc_of(raw)) + std::string(utf8));
}

inline constexpr uint32_t sentinel32 = 0xffffffff;
inline constexpr uint16_t sentinel16 = 0xffff, descriptor_bit = 1 << 3, lzma_end_bit = 1 << 1,
                          utf8_bit = 1 << 11;

// Positions in the records, for tests that change single bytes.
inline constexpr size_t local_header_size = 30, central_header_size = 46, end_record_size = 22,
                        end64_record_size = 56, locator_record_size = 20;

struct LocalHeader {
    uint32_t magic = 0x04034b50;
    uint16_t version = 20, flags = 0, method = 0, time = 0x6000, date = 0x5921;
    uint32_t crc = 0, stored_size = 0, size = 0;
    std::string name, extra;
    std::optional<uint16_t> name_size, extra_size;  // when they are not those of the strings

    [[nodiscard]] std::string bytes() const {
        return le32(magic) + le16(version) + le16(flags) + le16(method) + le16(time) + le16(date) +
               le32(crc) + le32(stored_size) + le32(size) + le16(name_size.value_or(name.size())) +
               le16(extra_size.value_or(extra.size())) + name + extra;
    }
};

struct CentralHeader {
    uint32_t magic = 0x02014b50;
    uint16_t made_by = 3 << 8 | 30, version = 20, flags = 0, method = 0, time = 0x6000,
             date = 0x5921;
    uint32_t crc = 0, stored_size = 0, size = 0;
    uint16_t disk = 0, internal = 0;
    uint32_t attributes = 0100644U << 16;
    uint32_t offset = 0;
    std::string name, extra, comment;
    std::optional<uint16_t> name_size, extra_size, comment_size;

    [[nodiscard]] std::string bytes() const {
        return le32(magic) + le16(made_by) + le16(version) + le16(flags) + le16(method) +
               le16(time) + le16(date) + le32(crc) + le32(stored_size) + le32(size) +
               le16(name_size.value_or(name.size())) + le16(extra_size.value_or(extra.size())) +
               le16(comment_size.value_or(comment.size())) + le16(disk) + le16(internal) +
               le32(attributes) + le32(offset) + name + extra + comment;
    }
};

struct Descriptor {
    bool magic = true, wide = false;  // with signature, with 64-bit sizes
    uint32_t crc = 0;
    uint64_t stored_size = 0, size = 0;

    [[nodiscard]] std::string bytes() const {
        const size_t width = wide ? 8 : 4;
        return (magic ? le32(0x08074b50) : "") + le32(crc) + le(stored_size, width) +
               le(size, width);
    }
};

struct EndRecord {
    uint32_t magic = 0x06054b50;
    uint16_t disk = 0, directory_disk = 0, disk_entries = 0, entries = 0;
    uint32_t directory_size = 0, offset = 0;
    std::string comment = {};
    std::optional<uint16_t> comment_size = {};

    [[nodiscard]] std::string bytes() const {
        return le32(magic) + le16(disk) + le16(directory_disk) + le16(disk_entries) +
               le16(entries) + le32(directory_size) + le32(offset) +
               le16(comment_size.value_or(comment.size())) + comment;
    }
};

struct End64Record {
    uint32_t magic = 0x06064b50;
    std::optional<uint64_t> record_size;
    uint16_t made_by = 3 << 8 | 45, version = 45;
    uint32_t disk = 0, directory_disk = 0;
    uint64_t disk_entries = 0, entries = 0, directory_size = 0, offset = 0;
    std::string more;  // the extensible data sector

    [[nodiscard]] std::string bytes() const {
        return le32(magic) + le64(record_size.value_or(44 + more.size())) + le16(made_by) +
               le16(version) + le32(disk) + le32(directory_disk) + le64(disk_entries) +
               le64(entries) + le64(directory_size) + le64(offset) + more;
    }
};

struct Locator {
    uint32_t magic = 0x07064b50, disk = 0;
    uint64_t offset = 0;
    uint32_t disks = 1;
    std::string gap;  // between it and the end record

    [[nodiscard]] std::string bytes() const {
        return le32(magic) + le32(disk) + le64(offset) + le32(disks) + gap;
    }
};

// One entry: what it holds, and how its records differ from what a sound writer makes.
struct Entry {
    std::string name;
    std::string data;
    uint16_t method = 0;
    std::string packed = {};  // `data` by that method; not for stored entries
    uint16_t flags = 0;
    bool zip64 = false;       // sizes only in the ZIP64 extra field, as writers of streams have it
    bool descriptor = false;  // CRC and sizes behind the data
    uint64_t hole = 0;        // zeros after the data that are not in bytes(); their CRC is `crc`
    std::optional<uint32_t> crc = {};
    std::string gap = {};  // after it
    std::function<void(LocalHeader&)> local = {};
    std::function<void(CentralHeader&)> central = {};
    std::function<void(Descriptor&)> tail = {};

    [[nodiscard]] const std::string& stored() const { return method == 0 ? data : packed; }
    [[nodiscard]] uint64_t stored_size() const { return stored().size() + hole; }
    [[nodiscard]] uint64_t size() const { return data.size() + hole; }
    [[nodiscard]] uint32_t checksum() const { return crc.value_or(crc_of(data)); }
    [[nodiscard]] bool is_wide() const {
        return zip64 || size() >= sentinel32 || stored_size() >= sentinel32;
    }
    [[nodiscard]] uint16_t all_flags() const {
        return static_cast<uint16_t>(flags | (descriptor ? descriptor_bit : 0));
    }

    [[nodiscard]] std::string local_bytes() const {
        LocalHeader h;
        h.flags = all_flags();
        h.method = method;
        h.name = name;
        if (is_wide()) {
            h.version = 45;
            h.stored_size = h.size = sentinel32;
            h.extra = zip64_extra(descriptor ? std::string(16, '\0')
                                             : test::le64(size()) + test::le64(stored_size()));
        } else if (!descriptor) {
            h.stored_size = static_cast<uint32_t>(stored_size());
            h.size = static_cast<uint32_t>(size());
        }
        if (!descriptor) h.crc = checksum();
        if (local) local(h);
        return h.bytes();
    }
    [[nodiscard]] std::string descriptor_bytes() const {
        if (!descriptor) return {};
        Descriptor d{
            .wide = is_wide(), .crc = checksum(), .stored_size = stored_size(), .size = size()};
        if (tail) tail(d);
        return d.bytes();
    }
    [[nodiscard]] std::string central_bytes(uint64_t at) const {
        CentralHeader h;
        h.flags = all_flags();
        h.method = method;
        h.crc = checksum();
        h.stored_size = is_wide() ? sentinel32 : static_cast<uint32_t>(stored_size());
        h.size = is_wide() ? sentinel32 : static_cast<uint32_t>(size());
        h.offset = at >= sentinel32 ? sentinel32 : static_cast<uint32_t>(at);
        h.name = name;
        std::string wide;
        if (is_wide()) wide = test::le64(size()) + test::le64(stored_size());
        if (at >= sentinel32) wide += test::le64(at);
        if (!wide.empty()) {
            h.version = 45;
            h.extra = zip64_extra(wide);
        }
        if (central) central(h);
        return h.bytes();
    }
};

// A whole file. Directory entries stand in the order of `order`, or of the entries.
struct Zip {
    std::vector<Entry> entries = {};
    std::string comment = {};
    bool zip64 = false;           // with ZIP64 records, and sentinels in the end record
    std::string prefix = {};      // before the first entry
    bool counted_prefix = false;  // offsets count it
    std::string before_directory = {}, before_end = {}, after = {};
    std::vector<size_t> order = {};
    std::function<void(EndRecord&)> end = {};
    std::function<void(End64Record&)> end64 = {};
    std::function<void(Locator&)> locator = {};

    [[nodiscard]] std::string bytes() const {
        std::string out;
        std::vector<uint64_t> offsets;
        const uint64_t base = counted_prefix ? prefix.size() : 0;
        for (const Entry& entry : entries) {
            offsets.push_back(base + out.size());
            out += entry.local_bytes() + entry.stored() + entry.descriptor_bytes() + entry.gap;
        }
        out += before_directory;
        return prefix + out + tail(offsets, base + out.size());
    }

    // The directory at byte `at` and what follows it, for entries that start at `offsets`.
    [[nodiscard]] std::string tail(const std::vector<uint64_t>& offsets, uint64_t at) const {
        std::string directory;
        size_t count = entries.size();
        if (order.empty())
            for (size_t i = 0; i < count; ++i) directory += entries[i].central_bytes(offsets[i]);
        for (const size_t i : order) directory += entries[i].central_bytes(offsets[i]);
        if (!order.empty()) count = order.size();

        EndRecord e;
        e.comment = comment;
        e.disk_entries = e.entries = static_cast<uint16_t>(count);
        e.directory_size = static_cast<uint32_t>(directory.size());
        e.offset = static_cast<uint32_t>(at);
        std::string records;
        if (zip64 || count >= sentinel16 || at >= sentinel32) {
            if (zip64 || count >= sentinel16) e.disk_entries = e.entries = sentinel16;
            if (zip64) e.directory_size = sentinel32;
            if (zip64 || at >= sentinel32) e.offset = sentinel32;
            End64Record wide;
            wide.disk_entries = wide.entries = count;
            wide.directory_size = directory.size();
            wide.offset = at;
            if (end64) end64(wide);
            Locator l;
            l.offset = at + directory.size() + before_end.size();
            if (locator) locator(l);
            records = wide.bytes() + l.bytes();
        }
        if (end) end(e);
        return directory + before_end + records + e.bytes() + after;
    }
};

}  // namespace shf::test
