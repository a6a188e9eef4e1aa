#include "image/image_header.h"

#include "core/error.h"
#include "image/jpeg.h"
#include "image/png.h"
#include "image/webp.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace shf {

namespace {

constexpr const char* other_format_help =
    "convert to JPEG, PNG or WebP, or take the field as bytes";

using namespace std::string_view_literals;

struct Signature {
    std::string_view format;
    size_t at;
    std::string_view bytes;
};

// Formats that people put into shards and that are not decoded here.
constexpr Signature others[] = {
    {"GIF", 0, "GIF8"sv},
    {"BMP", 0, "BM"sv},
    {"TIFF", 0, "II*\0"sv},
    {"TIFF", 0, "MM\0*"sv},
    {"BigTIFF", 0, "II+\0"sv},
    {"BigTIFF", 0, "MM\0+"sv},
    {"JPEG 2000", 0, "\0\0\0\x0cjP  "sv},
    {"JPEG 2000", 0, "\xff\x4f\xff\x51"sv},
    {"JPEG XL", 0, "\xff\x0a"sv},
    {"JPEG XL", 0, "\0\0\0\x0cJXL "sv},
    {"AVIF", 4, "ftypavi"sv},
    {"HEIF", 4, "ftyp"sv},
    {"Photoshop", 0, "8BPS"sv},
    {"OpenEXR", 0, "\x76\x2f\x31\x01"sv},
    {"QOI", 0, "qoif"sv},
    {"DDS", 0, "DDS "sv},
    {"ICO", 0, "\0\0\1\0"sv},
    {"Radiance HDR", 0, "#?RADIANCE"sv},
    {"Netpbm", 0, "P1\n"sv},
    {"Netpbm", 0, "P2\n"sv},
    {"Netpbm", 0, "P3\n"sv},
    {"Netpbm", 0, "P4\n"sv},
    {"Netpbm", 0, "P5\n"sv},
    {"Netpbm", 0, "P6\n"sv},
    {"Netpbm", 0, "P7\n"sv},
    {"PFM", 0, "PF\n"sv},
    {"PFM", 0, "Pf\n"sv},
};

}  // namespace

ImageHeader read_image_header(std::span<const uint8_t> file, bool orient) {
    const std::string_view start(reinterpret_cast<const char*>(file.data()),
                                 std::min<size_t>(file.size(), 32));
    const auto has = [start](size_t at, std::string_view bytes) {
        return start.size() >= at && start.substr(at).starts_with(bytes);
    };
    if (has(0, "\xff\xd8\xff")) return read_jpeg_header(file, orient);
    if (has(0, "\x89PNG\r\n\x1a\n")) return read_png_header(file, orient);
    if (has(0, "RIFF") && has(8, "WEBP")) return read_webp_header(file, orient);
    for (const Signature& other : others)
        if (has(other.at, other.bytes))
            throw Error(SHF_E_UNSUPPORTED,
                        "images in " + std::string(other.format) + " are not decoded",
                        other_format_help);
    throw Error(SHF_E_FORMAT,
                file.empty() ? "an image of 0 bytes" : "this is neither JPEG nor PNG nor WebP",
                other_format_help);
}

void bad_image(const char* format, const std::string& cause) {
    throw Error(SHF_E_FORMAT, std::string(format) + ": " + cause,
                "write the image again, or use on_error=skip_sample");
}

}  // namespace shf
