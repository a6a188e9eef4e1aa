// Parts of JPEGs: what is decoded of them is what the whole image has there, to the last bit.
#include "image/image_header.h"
#include "image/jpeg.h"
#include "image_decoding.h"
#include "image_files.h"

#include <algorithm>

namespace shf::test {
namespace {

// The whole image, decoded by TurboJPEG.
Bytes whole_of(const Bytes& file, uint32_t width, uint32_t height, int format) {
    const tjhandle handle = tjInitDecompress();
    Bytes pixels(size_t{width} * height * static_cast<size_t>(tjPixelSize[format]));
    if (tjDecompress2(handle, file.data(), file.size(), pixels.data(), static_cast<int>(width), 0,
                      static_cast<int>(height), format, 0) != 0)
        ADD_FAILURE() << tjGetErrorStr2(handle);
    tjDestroy(handle);
    return pixels;
}

void expect_part(const Bytes& file, const Bytes& whole, uint32_t reduction, uint32_t channels,
                 const CropBox& wanted) {
    const ImageHeader header = read_jpeg_header(file, false);
    const uint32_t width = (header.width + reduction - 1) / reduction;
    Pixels pixels{nullptr, 0, 0, channels, 8};
    PixelBuffer buffer;
    const CropBox part = decode_jpeg_part(file, header, reduction, wanted, pixels, buffer);
    ASSERT_LE(part.left, wanted.left);
    ASSERT_LE(part.top, wanted.top);
    ASSERT_GE(part.left + part.width, wanted.left + wanted.width);
    ASSERT_GE(part.top + part.height, wanted.top + wanted.height);
    for (uint32_t y = 0; y < wanted.height; ++y) {
        const uint8_t* const ours =
            pixels.row(wanted.top + y - part.top) + (wanted.left - part.left) * pixels.pixel_size();
        const auto first = static_cast<std::ptrdiff_t>(
            ((wanted.top + y) * size_t{width} + wanted.left) * channels);
        ASSERT_TRUE(std::equal(ours, ours + wanted.width * channels, whole.begin() + first))
            << "row " << y << " of " << wanted.width << "x" << wanted.height << " at "
            << wanted.left << ", " << wanted.top;
    }
}

TEST(ImagePart, is_what_the_whole_image_has_there) {
    uint32_t seed = 7;
    const auto below = [&seed](uint32_t bound) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % bound;
    };
    for (const int subsampling :
         {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411, TJSAMP_GRAY})
        for (const int flags : {0, TJFLAG_PROGRESSIVE})
            for (const auto& [width, height] : {std::pair(203, 155), {17, 90}, {90, 17}, {5, 3}}) {
                const bool grey = subsampling == TJSAMP_GRAY;
                const Bytes file =
                    jpeg_file(width, height, noise(static_cast<size_t>(width * height * 3)),
                              TJPF_RGB, subsampling, flags);
                for (const uint32_t reduction : {1U, 2U, 4U, 8U}) {
                    const uint32_t w = (static_cast<uint32_t>(width) + reduction - 1) / reduction;
                    const uint32_t h = (static_cast<uint32_t>(height) + reduction - 1) / reduction;
                    const uint32_t channels = grey ? 1 : 3;
                    const Bytes whole = whole_of(file, w, h, grey ? TJPF_GRAY : TJPF_RGB);
                    SCOPED_TRACE("subsampling " + std::to_string(subsampling) + ", flags " +
                                 std::to_string(flags) + ", " + std::to_string(w) + "x" +
                                 std::to_string(h) + " reduced by " + std::to_string(reduction));
                    expect_part(file, whole, reduction, channels, {0, 0, w, h});
                    for (int i = 0; i < 20; ++i) {
                        CropBox box;
                        box.width = 1 + below(w);
                        box.height = 1 + below(h);
                        box.left = below(w - box.width + 1);
                        box.top = below(h - box.height + 1);
                        expect_part(file, whole, reduction, channels, box);
                        if (HasFatalFailure()) return;
                    }
                }
            }
}

}  // namespace
}  // namespace shf::test
