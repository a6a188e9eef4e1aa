// The shard that index_fuzz reads: every way in which the places of fields can be told.
#pragma once

#include "../unit/index_builder.h"

#include <libdeflate.h>

namespace shf::test {

inline std::string tar_of_index_fuzz() {
    return member("a.jpg", std::string(600, 'j')) + member("a.cls", "7") +
           pax({{"path", "b.jpg"}, {"size", "9"}}) + header({.name = "other"}) +
           padded("pax bytes") + member("README", "ignored") + member("b.CLS", "") +
           header({.name = "d/", .type = '5'}) + gnu_name("d/" + std::string(120, 'n') + ".txt") +
           member("short", "gnu bytes", Carrier::gnu) + pax({{"mtime", "1.5"}}) +
           member("e.jpg", std::string(600, 'e')) + end_marker();
}

// The same in gzip members without compression, so that the bytes are the same everywhere.
inline std::string compressed_tar_of_index_fuzz() {
    const std::string tar = tar_of_index_fuzz();
    std::string all;
    for (size_t at = 0; at < tar.size(); at += 3000) {
        const std::string part = tar.substr(at, 3000);
        const auto number = [&all](uint64_t value, size_t width) {
            for (size_t i = 0; i < width; ++i) all += static_cast<char>(value >> (8 * i) & 255);
        };
        all += std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);  // RFC 1952, 2.3
        number(part.size(), 2);                                      // RFC 1951, 3.2.4
        number(~part.size() & 0xffff, 2);
        all += part;
        number(libdeflate_crc32(0, part.data(), part.size()), 4);
        number(part.size(), 4);
    }
    return all;
}

}  // namespace shf::test
