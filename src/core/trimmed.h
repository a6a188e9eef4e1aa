// Text without blanks around it; the locale does not matter.
#pragma once

#include <string_view>

namespace shf {

constexpr std::string_view trimmed(std::string_view text, std::string_view blanks) {
    const size_t first = text.find_first_not_of(blanks);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace shf
