// Builds tar archives block by block, broken ones included, so that each test says in bytes what it
// is about. The formats: POSIX.1-2017 "pax Interchange Format" and "ustar Interchange Format", GNU
// tar manual "Basic Tar Format".
#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf::test {

using namespace std::string_literals;

// Positions in a header block.
inline constexpr size_t size_field = 124, checksum_field = 148, type_field = 156, link_field = 157,
                        magic_field = 257, version_field = 263, prefix_field = 345,
                        gnu_extended_field = 482;

enum class Carrier : uint8_t { v7, ustar, gnu };

inline std::string zeros(size_t size) {
    return std::string(size, '\0');
}

// "s" and 12 make "s12".
inline std::string numbered(std::string_view before, size_t number) {
    return std::string(before).append(std::to_string(number));
}

// `width` bytes: octal digits and a NUL, as most writers make them.
inline std::string octal(uint64_t value, size_t width = 12) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%0*llo", static_cast<int>(width - 1),
                  static_cast<unsigned long long>(value));
    return std::string(digits, width);
}

// `width` bytes: GNU base-256.
inline std::string base256(uint64_t value, size_t width = 12) {
    std::string out(width, '\0');
    for (size_t i = width; i-- > 1; value >>= 8) out[i] = static_cast<char>(value & 255);
    out[0] = '\x80';
    return out;
}

inline void overwrite(std::string& bytes, size_t at, std::string_view with) {
    bytes.replace(at, with.size(), with);
}

// The sum of a header's bytes with the checksum field taken as blanks, as old writers with signed
// characters made it or as POSIX wants it.
inline int64_t header_sum(std::string_view block, bool signed_bytes = false) {
    int64_t sum = 0;
    for (size_t i = 0; i < 512; ++i) {
        const char c = i >= checksum_field && i < checksum_field + 8 ? ' ' : block[i];
        sum += signed_bytes ? static_cast<signed char>(c) : static_cast<unsigned char>(c);
    }
    return sum;
}

// Makes the checksum of the header at `at` right again.
inline void reseal(std::string& bytes, size_t at = 0, bool signed_bytes = false) {
    const int64_t sum = header_sum(std::string_view(bytes).substr(at, 512), signed_bytes);
    overwrite(bytes, at + checksum_field, octal(static_cast<uint64_t>(sum), 7) + " ");
}

// A sealed header after a change: with(header(...), magic_field, "ustar\0 \0"s).
inline std::string with(std::string block, size_t at, std::string_view bytes) {
    overwrite(block, at, bytes);
    reseal(block);
    return block;
}

struct Header {
    std::string name;
    char type = '0';
    uint64_t size = 0;
    Carrier carrier = Carrier::ustar;
    std::string prefix = {};
    std::string link = {};
};

inline std::string header(const Header& h) {
    std::string block = zeros(512);
    overwrite(block, 0, std::string_view(h.name).substr(0, 100));
    overwrite(block, 100, octal(0644, 8) + octal(1000, 8) + octal(1000, 8));
    overwrite(block, size_field, h.size < uint64_t{1} << 33 ? octal(h.size) : base256(h.size));
    overwrite(block, 136, octal(1700000000));
    block[type_field] = h.type;
    overwrite(block, link_field, std::string_view(h.link).substr(0, 100));
    if (h.carrier == Carrier::ustar) overwrite(block, magic_field, "ustar\00000"s);
    if (h.carrier == Carrier::gnu) overwrite(block, magic_field, "ustar  \0"s);
    overwrite(block, prefix_field, std::string_view(h.prefix).substr(0, 155));
    reseal(block);
    return block;
}

// Data and its padding.
inline std::string padded(std::string_view data) {
    return std::string(data) + zeros((512 - data.size() % 512) % 512);
}

// A header of the data's size, and the data.
inline std::string member(Header h, std::string_view data) {
    h.size = data.size();
    return header(h) + padded(data);
}
inline std::string member(std::string_view name, std::string_view data,
                          Carrier carrier = Carrier::ustar) {
    return member({.name = std::string(name), .carrier = carrier}, data);
}

// GNU headers before a member: 'L' holds its name, 'K' its link name.
inline std::string gnu_long(std::string_view text, char type = 'L',
                            Carrier carrier = Carrier::gnu) {
    return member({.name = "././@LongLink", .type = type, .carrier = carrier}, text);
}
// As GNU tar writes it, with the NUL.
inline std::string gnu_name(std::string_view name) {
    return gnu_long(std::string(name) + '\0');
}

// A pax record; its length counts itself.
inline std::string record(std::string_view key, std::string_view value) {
    const std::string rest = std::string(" ").append(key).append("=").append(value) + "\n";
    size_t length = rest.size() + 1;
    while (std::to_string(length).size() + rest.size() != length) ++length;
    return std::to_string(length) + rest;
}

using Records = std::initializer_list<std::pair<std::string_view, std::string_view>>;

inline std::string records(Records list) {
    std::string body;
    for (const auto& [key, value] : list) body += record(key, value);
    return body;
}

// A pax header with any body.
inline std::string pax_body(std::string_view body, char type = 'x',
                            Carrier carrier = Carrier::ustar) {
    return member({.name = "PaxHeaders/1", .type = type, .carrier = carrier}, body);
}
inline std::string pax(Records list, char type = 'x') {
    return pax_body(records(list), type);
}

// The two zero blocks.
inline std::string end_marker() {
    return zeros(1024);
}

// The four ways in which GNU tar stores a file of 20480 bytes with "data" at 0 and at 16384.
inline std::string sparse_old_gnu(std::string_view name, size_t extension_blocks = 0) {
    const std::string stored = padded("data") + padded("data");
    std::string block = header(
        {.name = std::string(name), .type = 'S', .size = stored.size(), .carrier = Carrier::gnu});
    overwrite(block, 386, octal(0) + octal(512) + octal(16384) + octal(512));
    overwrite(block, 483, octal(20480));
    if (extension_blocks > 0) block[gnu_extended_field] = 1;
    reseal(block);
    for (size_t i = 1; i <= extension_blocks; ++i) {
        std::string map = zeros(512);
        for (size_t entry = 0; entry < 21; ++entry)
            overwrite(map, entry * 24, octal(20480) + octal(0));
        map[504] = i < extension_blocks ? 1 : 0;
        block += map;
    }
    return block + stored;
}
inline std::string sparse_pax_0_0(std::string_view name) {
    return pax({{"GNU.sparse.size", "20480"},
                {"GNU.sparse.numblocks", "2"},
                {"GNU.sparse.offset", "0"},
                {"GNU.sparse.numbytes", "512"},
                {"GNU.sparse.offset", "16384"},
                {"GNU.sparse.numbytes", "512"}}) +
           member(name, padded("data") + padded("data"));
}
inline std::string sparse_pax_0_1(std::string_view name) {
    return pax({{"GNU.sparse.size", "20480"},
                {"GNU.sparse.numblocks", "2"},
                {"GNU.sparse.map", "0,512,16384,512"},
                {"GNU.sparse.name", name}}) +
           member("GNUSparseFile.1/made.up", padded("data") + padded("data"));
}
inline std::string sparse_pax_1_0(std::string_view name) {
    return pax({{"GNU.sparse.major", "1"},
                {"GNU.sparse.minor", "0"},
                {"GNU.sparse.name", name},
                {"GNU.sparse.realsize", "20480"}}) +
           member("GNUSparseFile.1/made.up",
                  padded("2\n0\n512\n16384\n512\n") + padded("data") + padded("data"));
}

}  // namespace shf::test
