// Decoding one image in a test.
#pragma once

#include "core/error.h"
#include "decode/image_decoder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace shf::test {

using Bytes = std::vector<uint8_t>;
using Mode = ImageOptions::Mode;

inline constexpr uint64_t test_max_decoded = 64 << 20;

struct Decoded {
    ArrayType type;
    Bytes bytes;

    template <typename Number>
    [[nodiscard]] std::vector<Number> numbers() const {
        std::vector<Number> out(bytes.size() / sizeof(Number));
        std::memcpy(out.data(), bytes.data(), out.size() * sizeof(Number));
        return out;
    }
};

inline Decoded decode_image(const Bytes& file, const ImageOptions& options = {},
                            uint64_t random = 0, uint64_t max_decoded = test_max_decoded) {
    static DecodeScratch scratch;  // every test also tests that it can be used again
    const auto decoder = image_decoder(options, max_decoded);
    Decoded result{decoder->measure(file, random).type, {}};
    // A byte that is not written, or one too many, is seen: both fillings must give the same.
    Bytes other(result.type.bytes() + 1, 0xaa);
    result.bytes.assign(result.type.bytes() + 1, 0x55);
    for (Bytes* out : {&result.bytes, &other}) {
        const uint8_t last = out->back();
        decoder->decode(file, random, result.type, std::span(*out).first(out->size() - 1), scratch);
        EXPECT_EQ(out->back(), last);
        out->pop_back();
    }
    EXPECT_EQ(result.bytes, other);
    return result;
}

// SHF_OK or the class of the error; the words of the error in `words`.
inline int32_t image_outcome(const Bytes& file, const ImageOptions& options = {},
                             std::string* words = nullptr,
                             uint64_t max_decoded = test_max_decoded) {
    try {
        decode_image(file, options, 0, max_decoded);
        return SHF_OK;
    } catch (const Error& error) {
        if (words != nullptr) *words = error.what();
        return error.code();
    }
}

}  // namespace shf::test
