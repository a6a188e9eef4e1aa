#include "codec/other_archive.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace shf {

namespace {

bool are_digits(std::string_view text, std::string_view digits) {
    return text.find_first_not_of(digits) == text.npos;
}

// Six digits are what a text may start with: the field behind them has to be a number too. The two
// bytes of the binary kind are fewer still: its mode has to be that of a file, and its name one
// that ends where the header says.
bool has_cpio_magic(std::string_view head) {
    constexpr std::string_view octal = "01234567", hexadecimal = "0123456789abcdefABCDEF";
    if (head.starts_with("070707"))
        return head.size() >= 12 && are_digits(head.substr(6, 6), octal);
    if (head.starts_with("070701") || head.starts_with("070702"))
        return head.size() >= 14 && are_digits(head.substr(6, 8), hexadecimal);
    constexpr size_t header_size = 26, mode_at = 6, name_size_at = 20;
    if (head.size() < header_size + 2) return false;
    const bool little = head.starts_with("\xc7\x71");
    if (!little && !head.starts_with("\x71\xc7")) return false;
    const auto number = [&](size_t at) {
        const auto first = static_cast<uint8_t>(head[at]),
                   second = static_cast<uint8_t>(head[at + 1]);
        return static_cast<unsigned>(little ? first | second << 8 : first << 8 | second);
    };
    const unsigned type = number(mode_at) >> 12, name_size = number(name_size_at);
    const bool is_type = type == 1 || type == 2 || type == 4 || type == 6 || type == 8 ||
                         type == 9 || type == 10 || type == 12;
    if (!is_type || name_size < 2) return false;
    const size_t last = header_size + name_size - 1;
    const std::string_view name = head.substr(header_size, name_size - 1);
    return name.find('\0') == name.npos && (last >= head.size() || head[last] == '\0');
}

}  // namespace

OtherArchive other_archive(std::span<const uint8_t> head) {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    if (text.starts_with(std::string_view("7z\xbc\xaf\x27\x1c", 6))) return OtherArchive::seven_zip;
    if (text.starts_with(std::string_view("Rar!\x1a\x07\x00", 7))) return OtherArchive::rar4;
    if (text.starts_with(std::string_view("Rar!\x1a\x07\x01\x00", 8))) return OtherArchive::rar5;
    return has_cpio_magic(text) ? OtherArchive::cpio : OtherArchive::none;
}

OtherArchive other_archive(Source& source) {
    std::array<uint8_t, 512> head{};
    const auto format = other_archive(std::span(head).first(source.read(0, head)));
    if (format != OtherArchive::none) return format;
    // ECMA-119, 8.1: any type, the identifier, version 1.
    std::array<uint8_t, 7> descriptor{};
    if (source.size().value_or(0) < iso_descriptor_at + descriptor.size() ||
        source.read(iso_descriptor_at, descriptor) < descriptor.size())
        return OtherArchive::none;
    const std::string_view text(reinterpret_cast<const char*>(descriptor.data()),
                                descriptor.size());
    return text.substr(1) == std::string_view("CD001\x01", 6) ? OtherArchive::iso9660
                                                              : OtherArchive::none;
}

const char* words_for(OtherArchive format) {
    switch (format) {
        case OtherArchive::seven_zip: return "a 7z archive";
        case OtherArchive::cpio: return "a cpio archive";
        case OtherArchive::rar4:
        case OtherArchive::rar5: return "a RAR archive";
        case OtherArchive::iso9660: return "an image of ISO 9660";
        case OtherArchive::none: break;
    }
    return "no archive";
}

}  // namespace shf
