// Bytes of the files of the cache: numbers in them are little endian.
#pragma once

#include "core/little_endian.h"

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shf {

inline std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline void put_number(std::string& out, uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8) out += static_cast<char>(number & 255);
}

// Writes all of `bytes` at `offset`. Returns an error number.
int write_all(int fd, std::span<const uint8_t> bytes, uint64_t offset);
// Reads up to out.size() bytes, fewer only at the end of the file; -1: an error.
int64_t read_all(int fd, std::span<uint8_t> out, uint64_t offset);
// The same for bytes that go to several places, at most four.
int64_t read_all(int fd, std::span<const iovec> parts, uint64_t offset);

}  // namespace shf
