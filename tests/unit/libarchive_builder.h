// Archives in the formats that only libarchive reads: written by libarchive, and RAR, which nobody
// may write but its owner, by hand with stored members.
#pragma once

#include "core/checksum.h"
#include "tar_builder.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

struct Packed {
    std::string name, data;
    unsigned type = AE_IFREG;
    std::string link = {};
};

// `format`: "7zip", "odc", "newc", "bin" or "iso9660".
inline std::string pack(const char* format, const std::vector<Packed>& members,
                        const char* options = nullptr) {
    std::string out(size_t{4} << 20, '\0');
    size_t used = 0;
    const std::unique_ptr<archive, int (*)(archive*)> a(archive_write_new(), archive_write_free);
    EXPECT_EQ(archive_write_set_format_by_name(a.get(), format), ARCHIVE_OK) << format;
    if (options) {
        EXPECT_EQ(archive_write_set_options(a.get(), options), ARCHIVE_OK) << options;
    }
    archive_write_set_bytes_in_last_block(a.get(), 1);
    EXPECT_EQ(archive_write_open_memory(a.get(), out.data(), out.size(), &used), ARCHIVE_OK);
    for (const Packed& member : members) {
        const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                             archive_entry_free);
        archive_entry_set_pathname(entry.get(), member.name.c_str());
        archive_entry_set_filetype(entry.get(), member.type);
        archive_entry_set_perm(entry.get(), 0640);
        archive_entry_set_mtime(entry.get(), 1700000000, 0);
        archive_entry_set_nlink(entry.get(), 1);
        if (!member.link.empty()) archive_entry_set_symlink(entry.get(), member.link.c_str());
        archive_entry_set_size(entry.get(), static_cast<la_int64_t>(member.data.size()));
        EXPECT_GE(archive_write_header(a.get(), entry.get()), ARCHIVE_WARN)
            << archive_error_string(a.get());
        if (!member.data.empty()) {
            EXPECT_EQ(archive_write_data(a.get(), member.data.data(), member.data.size()),
                      static_cast<la_ssize_t>(member.data.size()));
        }
    }
    EXPECT_EQ(archive_write_close(a.get()), ARCHIVE_OK) << archive_error_string(a.get());
    out.resize(used);
    return out;
}

inline std::span<const uint8_t> bytes_in(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string lowest_first(uint64_t value, size_t width) {
    std::string out;
    for (size_t i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
}

// A block of RAR 4: the low half of a CRC, type, flags, size of the header, what is in it.
inline std::string rar4_block(unsigned type, unsigned flags, const std::string& header,
                              std::string_view data = {}) {
    const std::string rest = lowest_first(type, 1) + lowest_first(flags, 2) +
                             lowest_first(7 + header.size(), 2) + header;
    return lowest_first(crc32(bytes_in(rest)) & 0xffff, 2) + rest + std::string(data);
}

inline std::string rar4_file(const Packed& member) {
    const uint32_t mode = member.type == AE_IFDIR ? 040755 : 0100644;
    return rar4_block(0x74, member.type == AE_IFDIR ? 0x80e0 : 0x8000,
                      lowest_first(member.data.size(), 4) + lowest_first(member.data.size(), 4) +
                          '\3' + lowest_first(crc32(bytes_in(member.data)), 4) +
                          lowest_first(0x57000000, 4) + '\x14' + '\x30' +
                          lowest_first(member.name.size(), 2) + lowest_first(mode, 4) + member.name,
                      member.data);
}

inline std::string rar4(const std::vector<Packed>& members, unsigned main_flags = 0) {
    std::string out("Rar!\x1a\x07\0", 7);
    out += rar4_block(0x73, main_flags, zeros(6));
    for (const Packed& member : members) out += rar4_file(member);
    return out + rar4_block(0x7b, 0x4000, "");
}

inline std::string rar5_number(uint64_t number) {
    std::string out;
    for (; number > 127; number >>= 7) out += static_cast<char>((number & 127) | 128);
    return out + static_cast<char>(number);
}

// A block of RAR 5: CRC, size of the header, type, flags, size of the data, what is in it.
inline std::string rar5_block(uint64_t type, uint64_t flags, const std::string& body,
                              std::string_view data = {}) {
    const std::string header = rar5_number(type) + rar5_number(flags) +
                               ((flags & 2) != 0 ? rar5_number(data.size()) : "") + body;
    const std::string rest = rar5_number(header.size()) + header;
    return lowest_first(crc32(bytes_in(rest)), 4) + rest + std::string(data);
}

inline std::string rar5_file(const Packed& member) {
    const bool folder = member.type == AE_IFDIR;
    // With a CRC, or of a directory; stored; written on Unix.
    return rar5_block(2, 2,
                      rar5_number(folder ? 1 : 4) + rar5_number(member.data.size()) +
                          rar5_number(folder ? 040755 : 0100644) +
                          (folder ? "" : lowest_first(crc32(bytes_in(member.data)), 4)) +
                          rar5_number(0) + rar5_number(1) + rar5_number(member.name.size()) +
                          member.name,
                      member.data);
}

inline std::string rar5(const std::vector<Packed>& members, uint64_t main_flags = 0) {
    std::string out("Rar!\x1a\x07\x01\0", 8);
    out += rar5_block(1, 0, rar5_number(main_flags));
    for (const Packed& member : members) out += rar5_file(member);
    return out + rar5_block(5, 0, rar5_number(0));
}

// Each format with its name.
inline std::vector<std::pair<std::string, std::string>> each_archive(
    const std::vector<Packed>& members) {
    return {{"7z", pack("7zip", members)},
            {"7z_deflate", pack("7zip", members, "7zip:compression=deflate")},
            {"7z_store", pack("7zip", members, "7zip:compression=store")},
            {"odc", pack("odc", members)},
            {"newc", pack("newc", members)},
            {"bin", pack("bin", members)},
            {"iso", pack("iso9660", members)},
            {"rar4", rar4(members)},
            {"rar5", rar5(members)}};
}

}  // namespace shf::test
