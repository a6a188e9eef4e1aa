// Pixels in memory while an image is being decoded, and what is done to them besides resampling.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shf {

// Rows without gaps, channels interleaved. Not the owner of its memory.
struct Pixels {
    uint8_t* data = nullptr;
    uint32_t width = 0, height = 0;
    uint32_t channels = 0;  // 1 grey, 3 colour, 4 colour and alpha
    uint32_t depth = 8;     // 8 bit: uint8_t, 16 bit: uint16_t in the machine's byte order

    [[nodiscard]] size_t pixel_size() const { return size_t{channels} * (depth / 8); }
    [[nodiscard]] size_t stride() const { return width * pixel_size(); }
    [[nodiscard]] uint8_t* row(size_t y) const { return data + y * stride(); }
};

// A part of an image.
struct CropBox {
    uint32_t left = 0, top = 0, width = 0, height = 0;
};

// Three channels to grey in the same memory: the luma of ITU-R BT.601 in 16 bits of fixed point, as
// convert("L") of Pillow computes it.
void make_grey(Pixels& pixels);

// `to` becomes `from` as EXIF orientation 2 to 8 says; it has the sizes for that already.
void orient(const Pixels& from, uint32_t orientation, const Pixels& to);
// Where a part of an image of this size comes to lie when it is turned so, and where a part of a
// turned image of this size was before.
CropBox turned_part(const CropBox& part, uint32_t orientation, uint32_t width, uint32_t height);
CropBox part_before_turn(const CropBox& part, uint32_t orientation, uint32_t width,
                         uint32_t height);

// Left becomes right. Also of results, with 32 bits.
void flip(const Pixels& pixels);

// What resampling of images with alpha must see: colours in proportion to their alpha, so that
// transparent pixels do not bleed. 8 and 16 bit; rounded as Pillow does.
void premultiply(const Pixels& pixels);
void unpremultiply(const Pixels& pixels);

}  // namespace shf
