// What the header of an image file says, before anything is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shf {

// In the order of the table in image_codecs.cpp.
enum class ImageFormat : uint8_t { jpeg, png, webp, gif, tiff, jxl, avif };

struct ImageHeader {
    ImageFormat format = ImageFormat::jpeg;
    uint32_t width = 0, height = 0;  // as stored, both above 0
    uint32_t channels = 0;           // 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha
    uint32_t depth = 8;              // bits of a channel after decoding: 8 or 16
    uint32_t orientation = 1;        // of EXIF, 1 to 8; 1 when nobody asked
    // What the decoder keeps of the whole image before there is a first pixel, in bytes.
    uint64_t kept = 0;
    size_t scans = 0;          // of a JPEG: where the data of the first scan begins
    bool has_palette = false;  // of a PNG
    // The numbers of colours in the palette are wanted, in one channel, and not the colours.
    bool indexes = false;

    [[nodiscard]] bool is_grey() const { return channels < 3; }
    [[nodiscard]] bool swaps_sides() const { return orientation >= 5; }
};

// Tells the format by the first bytes and reads the header. Throws Error: UNSUPPORTED for other
// formats and kinds of images, FORMAT for what is no image.
ImageHeader read_image_header(std::span<const uint8_t> file, bool orient);

// Throws Error(FORMAT) for an image that is damaged.
[[noreturn]] void bad_image(const char* format, const std::string& cause);

// Throws Error(UNSUPPORTED): this build was made without the library for these images.
[[noreturn]] void image_left_out(const char* format, const char* library);

}  // namespace shf
