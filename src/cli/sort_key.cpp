#include "cli/sort_key.h"

#include "cli/terminal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace cli {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n\v\f";
    const size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// The most significant byte first, so that memcmp compares numbers.
std::string big_endian(uint64_t number) {
    std::string made(8, '\0');
    for (size_t i = 0; i < 8; ++i) made[i] = static_cast<char>(number >> (56 - 8 * i));
    return made;
}

// Digits, of which longer ones are larger: their number, then they themselves.
std::string digits_key(std::string_view digits) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return big_endian(digits.size()) + std::string(digits);
}

std::string integer_key(std::string_view text) {
    std::string_view digits = trimmed(text);
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    for (const char c : digits)
        if (!is_digit(c)) digits = {};
    if (digits.empty())
        throw Failure(failed, "\"" + printable(text.substr(0, 40)) +
                                  "\" is no whole number; help: --type float, natural or bytes");
    std::string key = digits_key(digits);
    const bool zero = key.size() == 8;
    if (!negative || zero) return "\x01" + key;
    for (char& c : key) c = static_cast<char>(~static_cast<unsigned char>(c));
    return std::string(1, '\0') + key;
}

std::string number_key(std::string_view text) {
    std::string_view word = trimmed(text);
    if (word.starts_with('+')) word.remove_prefix(1);
    double number = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    if (word.empty() || error != std::errc() || stop != end)
        throw Failure(failed, "\"" + printable(text.substr(0, 40)) +
                                  "\" is no number; help: --type natural or bytes");
    if (std::isnan(number)) return std::string(9, '\xFF');
    // IEEE 754 numbers compare like their bits, but for the sign.
    const auto bits = std::bit_cast<uint64_t>(number + 0.0);
    constexpr uint64_t sign = uint64_t{1} << 63U;
    return big_endian((bits & sign) != 0 ? ~bits : bits | sign);
}

std::string natural_key(std::string_view text) {
    std::string key;
    while (!text.empty()) {
        if (!is_digit(text[0])) {
            key += text[0];
            text.remove_prefix(1);
            continue;
        }
        size_t size = 1;
        while (size < text.size() && is_digit(text[size])) ++size;
        key += '0' + digits_key(text.substr(0, size));
        text.remove_prefix(size);
    }
    return key;
}

}  // namespace

SortType sort_type_of(const std::string& word) {
    if (word == "bytes") return SortType::bytes;
    if (word == "int") return SortType::integer;
    if (word == "float") return SortType::number;
    if (word == "natural") return SortType::natural;
    throw Failure(wrong_command_line,
                  printable(word) + " is no way to sort; help: bytes, int, float or natural");
}

std::string sort_key(std::string_view text, SortType type) {
    switch (type) {
        case SortType::integer: return integer_key(text);
        case SortType::number: return number_key(text);
        case SortType::natural: return natural_key(text);
        case SortType::bytes: break;
    }
    return std::string(text);
}

}  // namespace cli
