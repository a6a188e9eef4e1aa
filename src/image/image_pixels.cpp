#include "image/image_pixels.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shf {

namespace {

template <typename Sample>
void make_grey_of(const Pixels& pixels) {
    const auto* in = reinterpret_cast<const Sample*>(pixels.data);
    auto* out = reinterpret_cast<Sample*>(pixels.data);
    // In blocks beside the image: the compiler sees that nothing is read that was just written.
    constexpr size_t channels = 3, block = 256;
    Sample greys[block];
    const size_t count = size_t{pixels.width} * pixels.height;
    for (size_t done = 0; done < count; done += block) {
        const size_t width = std::min(block, count - done);
        for (size_t i = 0; i < width; ++i) {
            const Sample* rgb = in + (done + i) * channels;
            greys[i] = static_cast<Sample>(
                (rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
        }
        std::memcpy(out + done, greys, width * sizeof(Sample));
    }
}

// Where the pixel (x, y) of the stored image goes; EXIF's table "0th row is, 0th column is".
struct Turn {
    bool swap, mirror_x, mirror_y;  // swap x and y first, then mirror in the result
};
constexpr Turn turns[] = {
    {false, false, false},  // 1 top left
    {false, true, false},   // 2 top right
    {false, true, true},    // 3 bottom right
    {false, false, true},   // 4 bottom left
    {true, false, false},   // 5 left top
    {true, true, false},    // 6 right top
    {true, true, true},     // 7 right bottom
    {true, false, true},    // 8 left bottom
};

template <size_t Size>
void orient_pixels(const Pixels& from, const Turn& turn, const Pixels& to) {
    // In squares, so that columns are written while their lines are in the cache.
    constexpr uint32_t side = 32;
    for (uint32_t top = 0; top < from.height; top += side)
        for (uint32_t left = 0; left < from.width; left += side) {
            const uint32_t bottom = std::min(from.height, top + side);
            const uint32_t right = std::min(from.width, left + side);
            for (uint32_t y = top; y < bottom; ++y) {
                const uint8_t* in = from.row(y) + left * Size;
                for (uint32_t x = left; x < right; ++x, in += Size) {
                    uint32_t to_x = turn.swap ? y : x, to_y = turn.swap ? x : y;
                    if (turn.mirror_x) to_x = to.width - 1 - to_x;
                    if (turn.mirror_y) to_y = to.height - 1 - to_y;
                    std::memcpy(to.row(to_y) + to_x * Size, in, Size);
                }
            }
        }
}

template <size_t Size>
void flip_rows(const Pixels& pixels) {
    for (uint32_t y = 0; y < pixels.height; ++y) {
        uint8_t* left = pixels.row(y);
        uint8_t* right = left + pixels.stride() - Size;
        for (; left < right; left += Size, right -= Size)
            std::swap_ranges(left, left + Size, right);
    }
}

// Calls `with` with the size of a pixel as a constant: one, three or four numbers of 8, 16 or, in a
// result, 32 bit.
template <typename With>
void for_pixel_size(size_t size, const With& with) {
    switch (size) {
        case 1: return with.template operator()<1>();
        case 2: return with.template operator()<2>();
        case 3: return with.template operator()<3>();
        case 4: return with.template operator()<4>();
        case 6: return with.template operator()<6>();
        case 8: return with.template operator()<8>();
        default: return with.template operator()<12>();
    }
}

template <typename Sample>
void premultiply_of(const Pixels& pixels) {
    constexpr uint64_t opaque = Sample(~0U);
    auto* pixel = reinterpret_cast<Sample*>(pixels.data);
    for (size_t i = size_t{pixels.width} * pixels.height; i-- > 0; pixel += 4)
        for (size_t c = 0; c < 3; ++c)  // rounded, as MULDIV255 of Pillow
            pixel[c] = static_cast<Sample>((uint64_t{pixel[c]} * pixel[3] + opaque / 2) / opaque);
}

template <typename Sample>
void unpremultiply_of(const Pixels& pixels) {
    constexpr uint64_t opaque = Sample(~0U);
    auto* pixel = reinterpret_cast<Sample*>(pixels.data);
    for (size_t i = size_t{pixels.width} * pixels.height; i-- > 0; pixel += 4) {
        const uint64_t alpha = pixel[3];
        if (alpha == 0 || alpha == opaque) continue;
        for (size_t c = 0; c < 3; ++c)
            pixel[c] = static_cast<Sample>(std::min(opaque * pixel[c] / alpha, opaque));
    }
}

}  // namespace

void make_grey(Pixels& pixels) {
    if (pixels.depth == 8)
        make_grey_of<uint8_t>(pixels);
    else
        make_grey_of<uint16_t>(pixels);
    pixels.channels = 1;
}

void orient(const Pixels& from, uint32_t orientation, const Pixels& to) {
    for_pixel_size(from.pixel_size(),
                   [&]<size_t Size>() { orient_pixels<Size>(from, turns[orientation - 1], to); });
}

CropBox turned_part(const CropBox& part, uint32_t orientation, uint32_t width, uint32_t height) {
    const Turn& turn = turns[orientation - 1];
    CropBox box = part;
    if (turn.swap) {
        box = {part.top, part.left, part.height, part.width};
        std::swap(width, height);
    }
    if (turn.mirror_x) box.left = width - box.left - box.width;
    if (turn.mirror_y) box.top = height - box.top - box.height;
    return box;
}

CropBox part_before_turn(const CropBox& part, uint32_t orientation, uint32_t width,
                         uint32_t height) {
    const Turn& turn = turns[orientation - 1];
    CropBox box = part;
    if (turn.mirror_x) box.left = width - box.left - box.width;
    if (turn.mirror_y) box.top = height - box.top - box.height;
    if (turn.swap) box = {box.top, box.left, box.height, box.width};
    return box;
}

void flip(const Pixels& pixels) {
    for_pixel_size(pixels.pixel_size(), [&]<size_t Size>() { flip_rows<Size>(pixels); });
}

void premultiply(const Pixels& pixels) {
    pixels.depth == 8 ? premultiply_of<uint8_t>(pixels) : premultiply_of<uint16_t>(pixels);
}

void unpremultiply(const Pixels& pixels) {
    pixels.depth == 8 ? unpremultiply_of<uint8_t>(pixels) : unpremultiply_of<uint16_t>(pixels);
}

}  // namespace shf
