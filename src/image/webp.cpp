#include "image/webp.h"

#include "core/error.h"
#include "image/exif.h"

#ifdef SHF_HAVE_WEBP
#include <webp/decode.h>
#endif

#include <cstring>
#include <new>
#include <string>

namespace shf {

#ifdef SHF_HAVE_WEBP

namespace {

[[noreturn]] void fail(VP8StatusCode status) {
    switch (status) {
        case VP8_STATUS_OUT_OF_MEMORY: throw std::bad_alloc();
        case VP8_STATUS_NOT_ENOUGH_DATA:
        case VP8_STATUS_SUSPENDED: bad_image("WebP", "the file ends too early");
        case VP8_STATUS_UNSUPPORTED_FEATURE:
            throw Error(SHF_E_UNSUPPORTED, "WebP: a feature that libwebp does not have",
                        "re-encode the image");
        default: bad_image("WebP", "the bitstream is damaged");
    }
}

// The chunk EXIF, which follows the pixels (RFC 9649 section 2.7.1.5).
uint32_t webp_orientation(std::span<const uint8_t> file) {
    constexpr size_t riff_header = 12, chunk_header = 8;
    size_t at = riff_header;
    while (file.size() - at >= chunk_header) {
        size_t length = 0;
        for (size_t i = 4; i-- > 0;) length = length << 8 | file[at + 4 + i];
        const size_t left = file.size() - at - chunk_header;
        if (length > left) break;
        if (std::memcmp(&file[at], "EXIF", 4) == 0)
            return exif_orientation(file.subspan(at + chunk_header, length));
        if (length == left) break;
        at +=
            chunk_header + length + length % 2;  // at most the size: one byte was left for padding
    }
    return 1;
}

}  // namespace

ImageHeader read_webp_header(std::span<const uint8_t> file, bool orient) {
    WebPBitstreamFeatures features;
    const VP8StatusCode status = WebPGetFeatures(file.data(), file.size(), &features);
    if (status != VP8_STATUS_OK) fail(status);
    if (features.has_animation != 0)
        throw Error(SHF_E_UNSUPPORTED, "WebP with an animation",
                    "store its frames as single images, or take the field as bytes");
    if (features.width < 1 || features.height < 1) bad_image("WebP", "an image of 0 pixels");
    return {.format = ImageFormat::webp,
            .width = static_cast<uint32_t>(features.width),
            .height = static_cast<uint32_t>(features.height),
            .channels = features.has_alpha != 0 ? 4U : 3U,
            .depth = 8,
            .orientation = orient ? webp_orientation(file) : 1};
}

void decode_webp(std::span<const uint8_t> file, const ImageHeader& /*header*/, const Pixels& to) {
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
        throw Error(SHF_E_INTERNAL, "libwebp is older than its header");
    config.output.colorspace = to.channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to.data;
    config.output.u.RGBA.stride = static_cast<int>(to.stride());
    config.output.u.RGBA.size = to.stride() * to.height;
    const VP8StatusCode status = WebPDecode(file.data(), file.size(), &config);
    WebPFreeDecBuffer(&config.output);
    if (status != VP8_STATUS_OK) fail(status);
    if (config.input.width < 1 || static_cast<uint32_t>(config.input.width) != to.width ||
        config.input.height < 1 || static_cast<uint32_t>(config.input.height) != to.height)
        bad_image("WebP", "the header is ambiguous");
}

const char* webp_version() noexcept {
    static const std::string text = [] {
        const auto version = static_cast<unsigned>(WebPGetDecoderVersion());
        return "libwebp " + std::to_string(version >> 16) + "." +
               std::to_string(version >> 8 & 255) + "." + std::to_string(version & 255);
    }();
    return text.c_str();
}

#else

ImageHeader read_webp_header(std::span<const uint8_t> /*file*/, bool /*orient*/) {
    image_left_out("WebP", "libwebp");
}

void decode_webp(std::span<const uint8_t> /*file*/, const ImageHeader& /*header*/,
                 const Pixels& /*to*/) {
    image_left_out("WebP", "libwebp");
}

const char* webp_version() noexcept {
    return nullptr;
}

#endif

}  // namespace shf
