// Reads one header block of a tar: its fields, the numbers in them, and its checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shf {

// Reads a number field of a tar header: octal, or base-256 (GNU) in canonical form. All NUL or all
// blank is 0. Nothing when it breaks the rules T5 and T6.
std::optional<uint64_t> parse_number(std::string_view field);

// What a header block of 512 bytes says about a file, when it is one of a file and says so without
// the help of headers before it.
struct PlainHeader {
    uint64_t size;
    std::array<char, 256> text;  // longest prefix, slash, longest name
    size_t name_size;

    [[nodiscard]] std::string_view name() const { return {text.data(), name_size}; }
};
std::optional<PlainHeader> parse_plain_header(const uint8_t* block);

namespace header_block {

inline constexpr size_t block_size = 512;

// Field positions in a header block (POSIX.1-2017, ustar Interchange Format).
inline constexpr size_t name_at = 0, name_size = 100, size_at = 124, size_size = 12;
inline constexpr size_t checksum_at = 148, checksum_size = 8, type_at = 156;
inline constexpr size_t magic_at = 257, prefix_at = 345, prefix_size = 155;
inline constexpr size_t gnu_extended_at = 482, gnu_extension_extended_at = 504;

inline std::string_view field(const uint8_t* block, size_t at, size_t size) {
    return {reinterpret_cast<const char*>(block) + at, size};
}

inline std::string_view until_nul(std::string_view text) {
    return text.substr(0, text.find('\0'));
}

bool is_zero(const uint8_t* block);
// Whether its checksum is the sum of its bytes.
bool checksum_holds(const uint8_t* block);

}  // namespace header_block

}  // namespace shf
