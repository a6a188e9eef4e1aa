// Letters of ASCII in lower case; the locale does not matter.
#pragma once

#include <string>
#include <string_view>

namespace shf {

constexpr char lowered(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lowered(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = lowered(c);
    return result;
}

}  // namespace shf
