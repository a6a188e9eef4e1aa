// .npy files as numpy.lib.format writes them, broken ones included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

// A header around `literal`, padded to a multiple of 64 bytes as numpy does it.
inline std::string npy_header(std::string literal, int version = 1) {
    const size_t before = version == 1 ? 10 : 12;
    literal += std::string(63 - (before + literal.size()) % 64, ' ') + "\n";
    std::string out = "\x93NUMPY";
    out += static_cast<char>(version);
    out += '\0';
    for (size_t i = 0; i < before - 8; ++i)
        out += static_cast<char>(literal.size() >> (8 * i) & 255);
    return out + literal;
}

// "(3, 4)", "(3,)" or "()".
inline std::string shape_text(const std::vector<int64_t>& shape) {
    std::string out = "(";
    for (const int64_t length : shape) {
        out += std::to_string(length);
        out += &length == &shape.back() && shape.size() > 1 ? "" : ", ";
    }
    return (shape.size() == 1 ? "(" + std::to_string(shape[0]) + "," : out) + ")";
}

inline std::string npy_literal(std::string_view descr, const std::vector<int64_t>& shape,
                               bool fortran = false) {
    return "{'descr': '" + std::string(descr) +
           "', 'fortran_order': " + (fortran ? "True" : "False") +
           ", 'shape': " + shape_text(shape) + ", }";
}

template <typename Number>
std::string npy(std::string_view descr, const std::vector<int64_t>& shape,
                const std::vector<Number>& numbers, bool fortran = false, int version = 1) {
    std::string out = npy_header(npy_literal(descr, shape, fortran), version);
    out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
    return out;
}

}  // namespace shf::test
