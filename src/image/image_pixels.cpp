#include "image/image_pixels.h"

#include "image/image_mode.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
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

template <typename To, typename From>
To convert(From value) {
    if constexpr (std::is_same_v<To, float>)
        return static_cast<float>(value) / (sizeof(From) == 1 ? 255.0F : 65535.0F);
    else if constexpr (sizeof(To) > sizeof(From))
        return static_cast<To>(value * 257);
    else  // only 16-bit modes keep 16 bits, and nothing makes 8 of them here
        return static_cast<To>(value);
}

template <typename From, typename To>
void convert_row(const From* in, To* out, size_t count) {
    if constexpr (std::is_same_v<From, To>)
        std::memcpy(out, in, count * sizeof(To));
    else
        for (size_t i = 0; i < count; ++i) out[i] = convert<To>(in[i]);
}

// InChannels is 1 or OutChannels.
template <typename From, typename To, size_t InChannels, size_t OutChannels>
void write_as(const Pixels& from, const CropBox& box, bool channels_first, To* out) {
    const To opaque = convert<To>(static_cast<From>(~0U));
    const size_t plane = size_t{box.width} * box.height;
    const size_t step = channels_first ? 1 : OutChannels;
    for (uint32_t y = 0; y < box.height; ++y) {
        const From* in =
            reinterpret_cast<const From*>(from.row(size_t{box.top} + y)) + box.left * InChannels;
        To* row = out + size_t{y} * box.width * step;
        if (step == InChannels && InChannels == OutChannels) {
            convert_row(in, row, box.width * InChannels);
        } else if (channels_first) {
            for (size_t c = 0; c < OutChannels; ++c) {
                To* const channel = row + c * plane;
                if (c == 3 && InChannels < 4) {
                    std::fill_n(channel, box.width, opaque);
                    continue;
                }
                const From* const samples = in + (InChannels == 1 ? 0 : c);
                // Gathered first: then the conversion is one that vector units do.
                constexpr size_t block = 256;
                From gathered[block];
                for (size_t left = 0; left < box.width; left += block) {
                    const size_t width = std::min(block, box.width - left);
                    for (size_t x = 0; x < width; ++x)
                        gathered[x] = samples[(left + x) * InChannels];
                    convert_row(gathered, channel + left, width);
                }
            }
        } else {
            for (size_t x = 0; x < box.width; ++x)
                for (size_t c = 0; c < OutChannels; ++c)
                    row[x * OutChannels + c] =
                        c == 3 && InChannels < 4
                            ? opaque
                            : convert<To>(in[x * InChannels + (InChannels == 1 ? 0 : c)]);
        }
    }
}

template <typename From, typename To>
void write_channels(const Pixels& from, const CropBox& box, size_t channels, bool channels_first,
                    To* out) {
    switch (from.channels * 10 + channels) {
        case 11: return write_as<From, To, 1, 1>(from, box, channels_first, out);
        case 13: return write_as<From, To, 1, 3>(from, box, channels_first, out);
        case 33: return write_as<From, To, 3, 3>(from, box, channels_first, out);
        case 44: return write_as<From, To, 4, 4>(from, box, channels_first, out);
        default: return;  // no mode has these
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

void flip(const Pixels& pixels) {
    for_pixel_size(pixels.pixel_size(), [&]<size_t Size>() { flip_rows<Size>(pixels); });
}

void keep_part(Pixels& pixels, const CropBox& box) {
    const Pixels whole = pixels;
    pixels.width = box.width;
    pixels.height = box.height;
    // A row goes to where no later one begins.
    for (uint32_t y = 0; y < box.height; ++y)
        std::memmove(pixels.row(y), whole.row(size_t{box.top} + y) + box.left * whole.pixel_size(),
                     pixels.stride());
}

void premultiply(const Pixels& pixels) {
    pixels.depth == 8 ? premultiply_of<uint8_t>(pixels) : premultiply_of<uint16_t>(pixels);
}

void unpremultiply(const Pixels& pixels) {
    pixels.depth == 8 ? unpremultiply_of<uint8_t>(pixels) : unpremultiply_of<uint16_t>(pixels);
}

void write_pixels(const Pixels& from, const CropBox& box, ImageOptions::Mode mode,
                  bool channels_first, std::span<uint8_t> out) {
    const ModeTraits& traits = traits_of(mode);
    const auto write = [&]<typename From, typename To>() {
        write_channels<From>(from, box, traits.channels, channels_first,
                             reinterpret_cast<To*>(out.data()));
    };
    const bool wide = from.depth == 16;
    switch (traits.dtype) {
        case DType::u8: return write.operator()<uint8_t, uint8_t>();
        case DType::u16:
            return wide ? write.operator()<uint16_t, uint16_t>()
                        : write.operator()<uint8_t, uint16_t>();
        default:
            return wide ? write.operator()<uint16_t, float>() : write.operator()<uint8_t, float>();
    }
}

}  // namespace shf
