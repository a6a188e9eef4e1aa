#include "image/image_codecs.h"

#include "core/memory_to_decode.h"
#include "image/avif.h"
#include "image/gif.h"
#include "image/jpeg.h"
#include "image/jxl.h"
#include "image/png.h"
#include "image/tiff.h"
#include "image/webp.h"

#include <png.h>

#include <algorithm>
#include <string>

namespace shf {

namespace {

using namespace std::string_view_literals;

const char* jpeg_version() {
    return "libjpeg-turbo " SHF_JPEG_VERSION;
}

const char* png_version() {
    static const std::string text = std::string("libpng ") + png_get_libpng_ver(nullptr);
    return text.c_str();
}

bool begins_with_any(std::string_view start, std::span<const std::string_view> signatures) {
    for (const std::string_view signature : signatures)
        if (start.starts_with(signature)) return true;
    return false;
}

bool begins_as_tiff(std::string_view start) {
    // The last two are BigTIFF, with places of 64 bits.
    constexpr std::string_view signatures[] = {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv};
    return begins_with_any(start, signatures);
}

bool begins_as_webp(std::string_view start) {
    return start.starts_with("RIFF") && start.substr(4).substr(0, 8).ends_with("WEBP");
}

bool begins_as_jxl(std::string_view start) {
    // A codestream by itself, and one in boxes.
    constexpr std::string_view signatures[] = {"\xff\x0a"sv, "\0\0\0\x0cJXL \r\n\x87\n"sv};
    return begins_with_any(start, signatures);
}

// ISO/IEC 14496-12, 4.3: the box ftyp has its size, a brand, a version, and other brands.
bool begins_as_avif(std::string_view start) {
    if (start.size() < 12 || start.substr(4, 4) != "ftyp") return false;
    size_t size = 0;
    for (const char byte : start.substr(0, 4)) size = size << 8 | static_cast<unsigned char>(byte);
    for (size_t at = 8; at + 4 <= std::min(size, start.size()); at += at == 8 ? 8 : 4)
        if (start.substr(at, 4) == "avif" || start.substr(at, 4) == "avis") return true;
    return false;
}

// Two forms of a library that does not say when it gets no memory.
constexpr size_t codec_memory = 1 << 20;

template <auto Read>
ImageHeader read_header_with_memory(std::span<const uint8_t> file, bool orient) {
    ImageHeader header;
    with_memory_to_decode(codec_memory, [&] { header = Read(file, orient); });
    return header;
}

template <auto Decode>
void decode_with_memory(std::span<const uint8_t> file, const ImageHeader& header,
                        const Pixels& to) {
    // The picture in planes of its own. What a header claims is no reason to ask for more.
    constexpr size_t most = 256 << 20;
    const size_t pixels = std::min(size_t{header.width} * header.height, most);
    const size_t planes = std::min(pixels * header.channels * (header.depth / 8), most);
    with_memory_to_decode(codec_memory + planes, [&] { Decode(file, header, to); });
}

constexpr ImageCodec codecs[] = {
    {"jpeg", "JPEG", [](std::string_view start) { return start.starts_with("\xff\xd8\xff"); },
     read_jpeg_header, decode_jpeg, jpeg_version},
    {"png", "PNG", [](std::string_view start) { return start.starts_with("\x89PNG\r\n\x1a\n"); },
     read_png_header, decode_png, png_version},
    {"webp", "WebP", begins_as_webp, read_header_with_memory<read_webp_header>,
     decode_with_memory<decode_webp>, webp_version},
    {"gif", "GIF",
     [](std::string_view start) {
         return start.starts_with("GIF87a") || start.starts_with("GIF89a");
     },
     read_header_with_memory<read_gif_header>, decode_with_memory<decode_gif>, gif_version},
    {"tiff", "TIFF", begins_as_tiff, read_header_with_memory<read_tiff_header>,
     decode_with_memory<decode_tiff>, tiff_version},
    {"jxl", "JPEG XL", begins_as_jxl, read_header_with_memory<read_jxl_header>,
     decode_with_memory<decode_jxl>, jxl_version},
    {"avif", "AVIF", begins_as_avif, read_header_with_memory<read_avif_header>,
     decode_with_memory<decode_avif>, avif_version},
};

}  // namespace

std::span<const ImageCodec> image_codecs() {
    return codecs;
}

const char* image_codec_version(std::string_view format) {
    for (const ImageCodec& codec : codecs)
        if (codec.feature == format) return codec.version();
    return nullptr;
}

}  // namespace shf
