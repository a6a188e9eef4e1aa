#include "cli/image_header.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace cli {

namespace {

using namespace std::string_view_literals;

uint64_t byte_at(std::string_view bytes, size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}
uint64_t big_endian(std::string_view bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8U | byte_at(bytes, at + i);
    return value;
}
uint64_t little_endian(std::string_view bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i > 0; --i) value = value << 8U | byte_at(bytes, at + i - 1);
    return value;
}

// ITU-T T.81, annex B: segments up to the frame header, which is one of SOF0 to SOF15.
std::optional<ImageHeader> jpeg(std::string_view bytes) {
    for (size_t at = 2; at + 4 <= bytes.size();) {
        if (byte_at(bytes, at) != 0xFF) return std::nullopt;
        const uint64_t marker = byte_at(bytes, at + 1);
        if (marker == 0xFF) {  // fill byte
            ++at;
            continue;
        }
        const bool is_frame =
            marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
        if (is_frame && at + 9 <= bytes.size())
            return ImageHeader{"JPEG", big_endian(bytes, at + 7, 2), big_endian(bytes, at + 5, 2)};
        if (is_frame || marker == 0xD9 || marker == 0xDA) return std::nullopt;
        at += 2 + static_cast<size_t>(big_endian(bytes, at + 2, 2));
    }
    return std::nullopt;
}

// RFC 9649, 2.5 to 2.7.
std::optional<ImageHeader> webp(std::string_view bytes) {
    if (bytes.size() < 30) return std::nullopt;
    const std::string_view chunk = bytes.substr(12, 4);
    if (chunk == "VP8X")
        return ImageHeader{"WebP", little_endian(bytes, 24, 3) + 1,
                           little_endian(bytes, 27, 3) + 1};
    if (chunk == "VP8L") {
        const uint64_t bits = little_endian(bytes, 21, 4);
        return ImageHeader{"WebP", (bits & 0x3FFFU) + 1, (bits >> 14U & 0x3FFFU) + 1};
    }
    if (chunk == "VP8 ")
        return ImageHeader{"WebP", little_endian(bytes, 26, 2) & 0x3FFFU,
                           little_endian(bytes, 28, 2) & 0x3FFFU};
    return std::nullopt;
}

// "P6 640 480", with blanks and comments between.
std::optional<ImageHeader> pnm(std::string_view bytes) {
    bytes = bytes.substr(0, 1000);
    size_t at = 2;
    const auto number = [&](uint64_t& out) {
        while (at < bytes.size() && (" \t\r\n#"sv.find(bytes[at]) != std::string_view::npos)) {
            if (bytes[at] == '#') at = std::min(bytes.find('\n', at), bytes.size() - 1);
            ++at;
        }
        const char* end = bytes.data() + bytes.size();
        const auto [stop, error] = std::from_chars(bytes.data() + at, end, out);
        at = static_cast<size_t>(stop - bytes.data());
        return error == std::errc();
    };
    ImageHeader made{"PNM", 0, 0};
    if (number(made.width) && number(made.height)) return made;
    return std::nullopt;
}

}  // namespace

std::optional<ImageHeader> image_header(std::string_view bytes) {
    if (bytes.starts_with("\xff\xd8\xff")) return jpeg(bytes);
    if (bytes.starts_with("\x89PNG\r\n\x1a\n") && bytes.size() >= 24 &&
        bytes.substr(12, 4) == "IHDR")
        return ImageHeader{"PNG", big_endian(bytes, 16, 4), big_endian(bytes, 20, 4)};
    if (bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8, 4) == "WEBP")
        return webp(bytes);
    if ((bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) && bytes.size() >= 10)
        return ImageHeader{"GIF", little_endian(bytes, 6, 2), little_endian(bytes, 8, 2)};
    if (bytes.size() > 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
        " \t\r\n"sv.find(bytes[2]) != std::string_view::npos)
        return pnm(bytes);
    return std::nullopt;
}

}  // namespace cli
