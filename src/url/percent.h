// Percent-decoding (RFC 3986, 2.1).
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace shf {

// A percent sign that begins no %XX stands for itself.
inline std::string percent_decoded(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        unsigned byte = 0;
        const char* const first = text.data() + i + 1;
        if (text[i] == '%' && i + 2 < text.size()) {
            const auto [end, error] = std::from_chars(first, first + 2, byte, 16);
            if (error == std::errc() && end == first + 2) {
                result += static_cast<char>(byte);
                i += 2;
                continue;
            }
        }
        result += text[i];
    }
    return result;
}

}  // namespace shf
