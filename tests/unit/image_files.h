// Image files for tests, written by the libraries that read them.
#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#ifdef SHF_HAVE_WEBP
#include <webp/encode.h>
#endif

namespace shf::test {

using Bytes = std::vector<uint8_t>;

// Smooth in every channel, so that JPEG keeps it nearly, and different in each.
inline Bytes gradient(int width, int height, int channels) {
    Bytes pixels;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            for (int c = 0; c < channels; ++c)
                pixels.push_back(static_cast<uint8_t>((x * (3 + c) + y * (7 - c) + 40 * c) % 256));
    return pixels;
}

inline Bytes noise(size_t count, uint32_t seed = 1) {
    Bytes bytes(count);
    for (uint8_t& byte : bytes) {
        seed = seed * 1664525 + 1013904223;
        byte = static_cast<uint8_t>(seed >> 24);
    }
    return bytes;
}

inline Bytes jpeg_file(int width, int height, const Bytes& pixels, int pixel_format = TJPF_RGB,
                       int subsampling = TJSAMP_420, int flags = 0) {
    const tjhandle handle = tjInitCompress();
    unsigned char* data = nullptr;
    unsigned long size = 0;  // NOLINT: of TurboJPEG
    if (tjCompress2(handle, pixels.data(), width, 0, height, pixel_format, &data, &size,
                    subsampling, 90, flags) != 0)
        std::abort();
    Bytes file(data, data + size);
    tjFree(data);
    tjDestroy(handle);
    return file;
}

struct PngSpec {
    int width = 1, height = 1;
    int type = PNG_COLOR_TYPE_RGB, bits = 8;
    bool interlaced = false;
    std::vector<png_color> palette{};
    Bytes palette_alpha{};
    const png_color_16* transparent = nullptr;  // the colour that tRNS names
    Bytes exif{};                               // the chunk eXIf
};

// `rows` as PNG has them: packed bits, 16 bits with the high byte first.
inline Bytes png_file(const PngSpec& spec, const Bytes& rows) {
    Bytes file;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(
        png, &file,
        [](png_structp p, png_bytep data, size_t size) {
            auto& out = *static_cast<Bytes*>(png_get_io_ptr(p));
            out.insert(out.end(), data, data + size);
        },
        nullptr);
    const auto width = static_cast<png_uint_32>(spec.width);
    const auto height = static_cast<png_uint_32>(spec.height);
    png_set_IHDR(png, info, width, height, spec.bits, spec.type,
                 spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (!spec.palette.empty())
        png_set_PLTE(png, info, spec.palette.data(), static_cast<int>(spec.palette.size()));
    if (!spec.palette_alpha.empty() || spec.transparent != nullptr)
        png_set_tRNS(png, info, spec.palette_alpha.data(),
                     static_cast<int>(spec.palette_alpha.size()), spec.transparent);
    Bytes exif = spec.exif;
    if (!exif.empty())
        png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), exif.data());
    png_write_info(png, info);
    const size_t stride = png_get_rowbytes(png, info);
    const int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; ++pass)
        for (size_t y = 0; y < height; ++y) png_write_row(png, rows.data() + y * stride);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return file;
}

inline Bytes png_rgb(int width, int height, const Bytes& pixels) {
    return png_file({.width = width, .height = height}, pixels);
}
inline Bytes png_grey(int width, int height, const Bytes& pixels) {
    return png_file({.width = width, .height = height, .type = PNG_COLOR_TYPE_GRAY}, pixels);
}

#ifdef SHF_HAVE_WEBP
inline Bytes webp_file(int width, int height, const Bytes& pixels, int channels, bool lossless) {
    uint8_t* data = nullptr;
    size_t size = 0;
    const int stride = width * channels;
    if (lossless)
        size = channels == 4 ? WebPEncodeLosslessRGBA(pixels.data(), width, height, stride, &data)
                             : WebPEncodeLosslessRGB(pixels.data(), width, height, stride, &data);
    else
        size = channels == 4 ? WebPEncodeRGBA(pixels.data(), width, height, stride, 80, &data)
                             : WebPEncodeRGB(pixels.data(), width, height, stride, 80, &data);
    if (size == 0) std::abort();
    Bytes file(data, data + size);
    WebPFree(data);
    return file;
}
#endif

// A TIFF structure with nothing but the orientation.
inline Bytes exif_block(uint8_t orientation, bool big_endian) {
    if (big_endian)
        return {'M', 'M',  0, 42, 0, 0, 0, 8, 0, 1,                  // header, one entry
                1,   0x12, 0, 3,  0, 0, 0, 1, 0, orientation, 0, 0,  // tag, SHORT, one, value
                0,   0,    0, 0};
    return {'I', 'I', 42, 0, 8, 0,           0, 0, 1, 0, 0x12, 1, 3,
            0,   1,   0,  0, 0, orientation, 0, 0, 0, 0, 0,    0, 0};
}

// The JPEG with the block in an APP1 segment behind SOI.
inline Bytes with_exif(const Bytes& jpeg, const Bytes& block) {
    const size_t length = 2 + 6 + block.size();
    Bytes file = {0xff,
                  0xd8,
                  0xff,
                  0xe1,
                  static_cast<uint8_t>(length >> 8),
                  static_cast<uint8_t>(length),
                  'E',
                  'x',
                  'i',
                  'f',
                  0,
                  0};
    file.insert(file.end(), block.begin(), block.end());
    file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
    return file;
}

}  // namespace shf::test
