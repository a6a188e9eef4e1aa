#include "cli/array_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace cli {

namespace {

struct Dtype {
    const char* name;
    size_t size;  // bytes of an element
};
constexpr std::array<Dtype, 14> dtypes = {{{"bool", 1},
                                           {"int8", 1},
                                           {"int16", 2},
                                           {"int32", 4},
                                           {"int64", 8},
                                           {"uint8", 1},
                                           {"uint16", 2},
                                           {"uint32", 4},
                                           {"uint64", 8},
                                           {"float16", 2},
                                           {"float32", 4},
                                           {"float64", 8},
                                           {"complex64", 8},
                                           {"complex128", 16}}};

template <typename Number>
Number number_at(const uint8_t* data) {
    Number number;
    std::memcpy(&number, data, sizeof number);
    return number;
}

std::string real(double number) {
    std::array<char, 32> digits = {};
    std::snprintf(digits.data(), digits.size(), "%.6g", number);
    return digits.data();
}

// IEEE 754 binary16.
double half(uint16_t bits) {
    const int exponent = bits >> 10U & 0x1F;
    const auto fraction = static_cast<double>(bits & 0x3FFU);
    const double size = exponent == 0    ? std::ldexp(fraction, -24)
                        : exponent == 31 ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                                         : std::ldexp(fraction + 1024, exponent - 25);
    return (bits & 0x8000U) != 0 ? -size : size;
}

std::string complex(double re, double im) {
    return real(re) + (std::signbit(im) ? "" : "+") + real(im) + "j";
}

std::string element(int32_t dtype, const uint8_t* at) {
    switch (dtype) {
        case SHF_DTYPE_BOOL: return *at != 0 ? "true" : "false";
        case SHF_DTYPE_INT8: return std::to_string(number_at<int8_t>(at));
        case SHF_DTYPE_INT16: return std::to_string(number_at<int16_t>(at));
        case SHF_DTYPE_INT32: return std::to_string(number_at<int32_t>(at));
        case SHF_DTYPE_INT64: return std::to_string(number_at<int64_t>(at));
        case SHF_DTYPE_UINT8: return std::to_string(*at);
        case SHF_DTYPE_UINT16: return std::to_string(number_at<uint16_t>(at));
        case SHF_DTYPE_UINT32: return std::to_string(number_at<uint32_t>(at));
        case SHF_DTYPE_UINT64: return std::to_string(number_at<uint64_t>(at));
        case SHF_DTYPE_FLOAT16: return real(half(number_at<uint16_t>(at)));
        case SHF_DTYPE_FLOAT32: return real(static_cast<double>(number_at<float>(at)));
        case SHF_DTYPE_FLOAT64: return real(number_at<double>(at));
        case SHF_DTYPE_COMPLEX64:
            return complex(static_cast<double>(number_at<float>(at)),
                           static_cast<double>(number_at<float>(at + 4)));
        case SHF_DTYPE_COMPLEX128: return complex(number_at<double>(at), number_at<double>(at + 8));
        default: return "?";
    }
}

}  // namespace

ArrayText::ArrayText(const shf_array& array) : dtype("unknown"), shape("("), json_shape("[") {
    for (int32_t i = 1; i < array.ndim; ++i) {
        const std::string length = std::to_string(array.shape[i]);
        shape += (i == 1 ? "" : ", ") + length;
        json_shape += (i == 1 ? "" : ",") + length;
    }
    shape += array.ndim == 2 ? ",)" : ")";  // as Python writes a tuple of one
    json_shape += "]";
    if (array.dtype < 0 || static_cast<size_t>(array.dtype) >= dtypes.size()) return;
    const auto [name, size] = dtypes[static_cast<size_t>(array.dtype)];
    dtype = name;
    constexpr size_t shown = 8;
    const size_t count = array.size / size;
    for (size_t i = 0; i < std::min(count, shown); ++i) {
        if (i > 0) values += ' ';
        values += element(array.dtype, static_cast<const uint8_t*>(array.data) + i * size);
    }
    if (count > shown) values += " ...";
}

}  // namespace cli
