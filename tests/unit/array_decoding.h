// What decoders of arrays make of a field.
#pragma once

#include "core/error.h"
#include "decode/decoder.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf::test {

inline std::span<const uint8_t> span_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct Decoded {
    ArrayType type;
    std::string bytes;
};

inline Decoded decode(const Decoder& decoder, std::string_view field) {
    Decoded out;
    out.type = decoder.measure(span_of(field), 0).type;
    out.bytes.resize(static_cast<size_t>(out.type.bytes()));
    DecodeScratch scratch;
    decoder.decode(span_of(field), 0, out.type,
                   {reinterpret_cast<uint8_t*>(out.bytes.data()), out.bytes.size()}, scratch);
    return out;
}

// Error class and message of what is wrong with a field, or OK.
inline std::pair<int32_t, std::string> fault_of(const Decoder& decoder, std::string_view field) {
    try {
        decode(decoder, field);
        return {SHF_OK, {}};
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
}

template <typename Number>
std::vector<Number> numbers_of(const Decoded& decoded) {
    std::vector<Number> out(decoded.bytes.size() / sizeof(Number));
    if (!out.empty()) std::memcpy(out.data(), decoded.bytes.data(), decoded.bytes.size());
    return out;
}

template <typename Number>
std::string elements(const std::vector<Number>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

}  // namespace shf::test
