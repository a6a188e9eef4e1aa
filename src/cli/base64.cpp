#include "cli/base64.h"

#include <cstdint>

namespace cli {

namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
    std::string made;
    made.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const std::string_view three = bytes.substr(i, 3);
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; ++k)
            bits = bits << 8U | (k < three.size() ? static_cast<unsigned char>(three[k]) : 0U);
        for (size_t k = 0; k < 4; ++k)
            made += k <= three.size() ? digits[bits >> (18 - 6 * k) & 63U] : '=';
    }
    return made;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    size_t padding = 0;
    while (padding < 2 && text.ends_with('=')) {
        text.remove_suffix(1);
        ++padding;
    }
    std::string made;
    made.reserve(text.size() / 4 * 3 + 2);
    uint32_t bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        const size_t digit = digits.find(c);
        if (digit == std::string_view::npos) return std::nullopt;
        bits = bits << 6U | static_cast<uint32_t>(digit);
        count += 6;
        if (count >= 8) {
            count -= 8;
            made += static_cast<char>(bits >> count & 0xFFU);
        }
    }
    return made;
}

}  // namespace cli
