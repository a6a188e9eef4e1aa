// Arrays in TenBin as tensorcom and webdataset write them, broken ones included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

inline std::string le64_text(uint64_t number) {
    std::string out;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(number >> (8 * i) & 255);
    return out;
}

inline std::string ten_chunk(const std::string& payload) {
    return "~TenBin~" + le64_text(payload.size()) + payload +
           std::string((64 - payload.size() % 64) % 64, '\0');
}

inline std::string ten_header(std::string dtype, const std::vector<int64_t>& shape,
                              std::string name = "") {
    dtype.resize(8);
    name.resize(8);
    std::string out = dtype + name + le64_text(shape.size());
    for (const int64_t length : shape) out += le64_text(static_cast<uint64_t>(length));
    return out;
}

inline std::string ten(const std::string& dtype, const std::vector<int64_t>& shape,
                       const std::string& elements, const std::string& name = "") {
    return ten_chunk(ten_header(dtype, shape, name)) + ten_chunk(elements);
}

}  // namespace shf::test
