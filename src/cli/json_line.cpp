#include "cli/json_line.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace cli {

namespace {

// Whether the bytes stand for themselves between the quotes of a JSON string.
bool is_plain(std::string_view bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
}

std::string hex_of(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string made;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        made += digits[byte >> 4U];
        made += digits[byte & 15U];
    }
    return made;
}

}  // namespace

JsonLine& JsonLine::raw(std::string_view name, std::string_view json) {
    text_ += text_.size() == 1 ? "\"" : ",\"";
    text_ += name;
    text_ += "\":";
    text_ += json;
    return *this;
}

JsonLine& JsonLine::bytes(std::string_view name, std::string_view value) {
    if (is_plain(value)) {
        raw(name, "\"");
        text_ += value;
        text_ += '"';
        return *this;
    }
    const std::string safe = printable(value);
    raw(name, json_text(safe));
    if (safe != value) text(std::string(name) + "_hex", hex_of(value));
    return *this;
}

JsonLine& JsonLine::number(std::string_view name, double value) {
    std::array<char, 32> digits = {};
    std::snprintf(digits.data(), digits.size(), "%.6g", value);
    return raw(name, digits.data());
}

}  // namespace cli
