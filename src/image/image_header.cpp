#include "image/image_header.h"

#include "core/error.h"
#include "image/image_codecs.h"

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
    {"BMP", 0, "BM"sv},
    {"JPEG 2000", 0, "\0\0\0\x0cjP  "sv},
    {"JPEG 2000", 0, "\xff\x4f\xff\x51"sv},
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
                                 std::min(file.size(), signature_size));
    const auto has = [start](size_t at, std::string_view bytes) {
        return start.size() >= at && start.substr(at).starts_with(bytes);
    };
    for (const ImageCodec& codec : image_codecs())
        if (codec.begins(start)) return codec.read_header(file, orient);
    for (const Signature& other : others)
        if (has(other.at, other.bytes))
            throw Error(SHF_E_UNSUPPORTED,
                        "images in " + std::string(other.format) + " are not decoded",
                        other_format_help);
    throw Error(SHF_E_FORMAT,
                file.empty() ? "an image of 0 bytes" : "this is no image of a known format",
                other_format_help);
}

void bad_image(const char* format, const std::string& cause) {
    throw Error(SHF_E_FORMAT, std::string(format) + ": " + cause,
                "write the image again, or use on_error=skip_sample");
}

void image_left_out(const char* format, const char* library) {
    throw Error(SHF_E_UNSUPPORTED,
                std::string("images in ") + format + ": this library was built without " + library,
                std::string("build with ") + library + ", or convert the images");
}

}  // namespace shf
