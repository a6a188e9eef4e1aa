// Writes the headers of tar members. The layout: POSIX.1-2017, "ustar Interchange Format" and, only
// where a name or a size does not fit that, "pax Interchange Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

// The same for all members, so that the same samples make the same bytes: a file that its owner may
// write and all may read (0644), of user and group 0 without names, from the second 0 of 1970.
//
// Appends the header of a file, 512 bytes, with a pax header before it where that is needed. `name`
// is not empty and has no NUL.
void append_tar_header(std::string& out, std::string_view name, uint64_t size);

// How many bytes that appends.
uint64_t tar_header_size(std::string_view name, uint64_t size);

// What fills up the last block of a file's data.
constexpr size_t tar_padding(uint64_t size) {
    return static_cast<size_t>((512 - size % 512) % 512);
}

// Two blocks of zeros, and zeros up to a whole record of 20 blocks, behind `position` bytes of the
// archive: as other writers do, and as those who read records from a tape need it.
size_t tar_end_size(uint64_t position);

}  // namespace shf
