// Image files for tests, byte by byte: GIF and TIFF.
#pragma once

#include "image_files.h"

#include <algorithm>
#include <array>

namespace shf::test {

struct GifSpec {
    int width = 1, height = 1;
    std::vector<std::array<uint8_t, 3>> palette{};  // none: levels of grey
    bool interlaced = false;
    int transparent = -1;                                        // colour
    int left = 0, top = 0, screen_width = 0, screen_height = 0;  // 0: as the frame
    bool local_palette = false;
    int frames = 1;  // the others are of noise
};

namespace gif_detail {

inline void add_word(Bytes& to, int value) {
    to.push_back(static_cast<uint8_t>(value));
    to.push_back(static_cast<uint8_t>(value >> 8));
}

// LZW whose codes are all of 9 bits: the table is cleared before they would grow.
inline void add_pixels(Bytes& to, const Bytes& pixels) {
    constexpr int clear = 256, end = 257;
    Bytes codes;
    unsigned held = 0, bits = 0;
    const auto add = [&](int code) {
        held |= static_cast<unsigned>(code) << bits;
        for (bits += 9; bits >= 8; bits -= 8, held >>= 8)
            codes.push_back(static_cast<uint8_t>(held));
    };
    for (size_t i = 0; i < pixels.size(); ++i) {
        if (i % 250 == 0) add(clear);
        add(pixels[i]);
    }
    add(end);
    if (bits > 0) codes.push_back(static_cast<uint8_t>(held));
    to.push_back(8);
    for (size_t at = 0; at < codes.size(); at += 255) {
        const size_t size = std::min<size_t>(255, codes.size() - at);
        to.push_back(static_cast<uint8_t>(size));
        to.insert(to.end(), codes.begin() + static_cast<std::ptrdiff_t>(at),
                  codes.begin() + static_cast<std::ptrdiff_t>(at + size));
    }
    to.push_back(0);
}

}  // namespace gif_detail

// `pixels` are colours of the palette.
inline Bytes gif_file(const GifSpec& spec, const Bytes& pixels) {
    using gif_detail::add_word;
    Bytes palette, file = {'G', 'I', 'F', '8', '9', 'a'};
    int bits = 1;
    while ((size_t{1} << bits) < spec.palette.size()) ++bits;
    for (const auto& colour : spec.palette)
        palette.insert(palette.end(), colour.begin(), colour.end());
    if (!palette.empty()) palette.resize(size_t{3} << bits);
    const int flags = palette.empty() ? 0 : 0x80 | (bits - 1);
    add_word(file, spec.screen_width > 0 ? spec.screen_width : spec.width + spec.left);
    add_word(file, spec.screen_height > 0 ? spec.screen_height : spec.height + spec.top);
    file.insert(file.end(), {static_cast<uint8_t>(spec.local_palette ? 0 : flags), 0, 0});
    if (!spec.local_palette) file.insert(file.end(), palette.begin(), palette.end());
    for (const char c : {'\x21', '\xfe', '\x02', 'h', 'i', '\0'})  // a comment
        file.push_back(static_cast<uint8_t>(c));
    for (int frame = 0; frame < spec.frames; ++frame) {
        if (spec.transparent >= 0)
            file.insert(file.end(),
                        {0x21, 0xf9, 4, 1, 0, 0, static_cast<uint8_t>(spec.transparent), 0});
        file.push_back(0x2c);
        for (const int number : {spec.left, spec.top, spec.width, spec.height})
            add_word(file, number);
        file.push_back(
            static_cast<uint8_t>((spec.local_palette ? flags : 0) | (spec.interlaced ? 0x40 : 0)));
        if (spec.local_palette) file.insert(file.end(), palette.begin(), palette.end());
        Bytes stored = frame == 0 ? pixels : noise(pixels.size());
        if (spec.interlaced) {
            const auto width = static_cast<size_t>(spec.width);
            Bytes rows;
            for (const auto& [first, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}})
                for (int y = first; y < spec.height; y += step)
                    rows.insert(rows.end(),
                                stored.begin() +
                                    static_cast<std::ptrdiff_t>(static_cast<size_t>(y) * width),
                                stored.begin() + static_cast<std::ptrdiff_t>(
                                                     static_cast<size_t>(y + 1) * width));
            stored = rows;
        }
        gif_detail::add_pixels(file, stored);
    }
    file.push_back(0x3b);
    return file;
}

struct TiffSpec {
    uint32_t width = 1, height = 1;
    uint16_t bits = 8, samples = 3, photometric = 2;
    bool planes = false, big_endian = false;
    int extra = -1;  // kind of the samples behind the colours; -1: no tag
    uint16_t orientation = 1, format = 1, compression = 1;
    uint32_t rows = 0;  // of a strip; 0: all
    uint32_t tile = 0;  // its side; 0: strips
    Bytes palette{};    // red of all colours, then green, then blue
};

// Uncompressed; `pieces` are the strips or tiles one after another, all of one size but the last
// strip. The data is last, so that no part of the file is without meaning.
inline Bytes tiff_file(const TiffSpec& spec, const Bytes& pieces) {
    Bytes file;
    const auto add = [&](uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i)
            file.push_back(
                static_cast<uint8_t>(value >> (8 * (spec.big_endian ? bytes - 1 - i : i))));
    };
    const uint32_t planes = spec.planes ? spec.samples : 1;
    const uint32_t stored = spec.planes ? 1 : spec.samples;
    const uint32_t rows = spec.rows > 0 ? spec.rows : spec.height;
    const auto row_bytes = [&](uint32_t width) { return (width * stored * spec.bits + 7) / 8; };
    std::vector<uint32_t> sizes;
    for (uint32_t plane = 0; plane < planes; ++plane) {
        if (spec.tile > 0) {
            const uint32_t across = (spec.width + spec.tile - 1) / spec.tile;
            const uint32_t down = (spec.height + spec.tile - 1) / spec.tile;
            sizes.insert(sizes.end(), size_t{across} * down, row_bytes(spec.tile) * spec.tile);
        } else {
            for (uint32_t top = 0; top < spec.height; top += rows)
                sizes.push_back(row_bytes(spec.width) * std::min(rows, spec.height - top));
        }
    }
    struct Tag {
        uint16_t tag, type;
        std::vector<uint32_t> values;
    };
    std::vector<Tag> tags = {{256, 4, {spec.width}},
                             {257, 4, {spec.height}},
                             {258, 3, std::vector<uint32_t>(spec.samples, spec.bits)},
                             {259, 3, {spec.compression}},
                             {262, 3, {spec.photometric}},
                             {274, 3, {spec.orientation}},
                             {277, 3, {spec.samples}},
                             {284, 3, {spec.planes ? 2U : 1U}}};
    if (spec.tile > 0) {
        tags.push_back({322, 4, {spec.tile}});
        tags.push_back({323, 4, {spec.tile}});
    } else {
        tags.push_back({278, 4, {rows}});
    }
    tags.push_back({uint16_t(spec.tile > 0 ? 324 : 273), 4, std::vector<uint32_t>(sizes.size())});
    tags.push_back({uint16_t(spec.tile > 0 ? 325 : 279), 4, sizes});
    tags.push_back({339, 3, std::vector<uint32_t>(spec.samples, spec.format)});
    if (spec.extra >= 0) {
        const size_t colours = spec.photometric == 2 ? 3 : spec.photometric == 5 ? 4 : 1;
        tags.push_back(
            {338, 3,
             std::vector<uint32_t>(spec.samples - colours, static_cast<uint32_t>(spec.extra))});
    }
    if (!spec.palette.empty()) {
        std::vector<uint32_t> words;
        for (const uint8_t level : spec.palette) words.push_back(level * 257U);
        tags.push_back({320, 3, words});
    }
    std::sort(tags.begin(), tags.end(), [](const Tag& a, const Tag& b) { return a.tag < b.tag; });
    const auto size_of = [](const Tag& tag) { return tag.values.size() * (tag.type == 3 ? 2 : 4); };
    size_t more = 8 + 2 + 12 * tags.size() + 4, data = more;
    for (const Tag& tag : tags)
        if (size_of(tag) > 4) data += size_of(tag);
    for (Tag& tag : tags) {
        if (tag.tag != 273 && tag.tag != 324) continue;
        size_t at = data;
        for (size_t i = 0; i < sizes.size(); at += sizes[i++])
            tag.values[i] = static_cast<uint32_t>(at);
    }
    file = spec.big_endian ? Bytes{'M', 'M'} : Bytes{'I', 'I'};
    add(42, 2);
    add(8, 4);
    add(tags.size(), 2);
    for (const Tag& tag : tags) {
        add(tag.tag, 2);
        add(tag.type, 2);
        add(tag.values.size(), 4);
        if (size_of(tag) > 4) {
            add(more, 4);
            more += size_of(tag);
            continue;
        }
        for (const uint32_t value : tag.values) add(value, tag.type == 3 ? 2 : 4);
        for (size_t i = size_of(tag); i < 4; ++i) file.push_back(0);
    }
    add(0, 4);
    for (const Tag& tag : tags)
        if (size_of(tag) > 4)
            for (const uint32_t value : tag.values) add(value, tag.type == 3 ? 2 : 4);
    file.insert(file.end(), pieces.begin(), pieces.end());
    return file;
}

}  // namespace shf::test
