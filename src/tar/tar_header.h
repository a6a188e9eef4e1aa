// Writes the headers of tar members. The layout: POSIX.1-2017, "ustar Interchange Format" and, only
// where a name or a size does not fit that, "pax Interchange Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

// What the header of a file says beside its name and size. The default is the same for all members,
// so that the same samples make the same bytes: a file that its owner may write and all may read,
// of user and group 0 without names, from the second 0 of 1970.
struct TarOwner {
    uint32_t mode = 0644;        // below 010000000
    uint32_t id = 0;             // of user and group; below 010000000
    std::string_view name = {};  // of user and group; at most 31 bytes
    uint64_t modified = 0;       // seconds since 1970, below 2^33
};

// What tarp writes: a file that its owner may write and all may run, of a user and a group named
// bigdata, from two seconds before `now`.
TarOwner tarp_owner(uint64_t now);

// Appends the header of a file, 512 bytes, with a pax header before it where that is needed. `name`
// is not empty and has no NUL.
void append_tar_header(std::string& out, std::string_view name, uint64_t size,
                       const TarOwner& owner = {});

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
