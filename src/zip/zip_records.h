// Writes the records of a ZIP file: PKWARE's APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to
// 4.3.16. 64-bit fields (4.5.3) are there exactly where a 16- or 32-bit one cannot hold the value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

struct ZipRecord {
    std::string_view name;  // at most 65,535 bytes
    uint64_t stored = 0;    // bytes of its data in the file
    uint64_t size = 0;      // and of the member
    uint64_t offset = 0;    // of its local header
    uint32_t crc = 0;
    bool deflated = false;
};

// The same for all entries, so that the same samples make the same bytes: 1980-01-01 00:00, a file
// of Unix with mode 0644. Bit 11 says where a name is UTF-8 and not ASCII.
void append_local_header(std::string& out, const ZipRecord& record);
void append_central_header(std::string& out, const ZipRecord& record);
// Of a directory of `size` bytes at `offset`.
void append_zip_end(std::string& out, uint64_t entries, uint64_t size, uint64_t offset);

// What both headers of an entry take at most.
constexpr uint64_t zip_headers_size(std::string_view name) {
    return 30 + 20 + 46 + 28 + 2 * name.size();
}

// And the end of the file.
inline constexpr uint64_t zip_end_size = 56 + 20 + 22;

}  // namespace shf
