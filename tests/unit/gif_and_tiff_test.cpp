// Images in GIF and TIFF: every layout has the pixels that it says, what is not read is refused,
// and damage is an error.
#include "image/image_codecs.h"

#include "gif_and_tiff_files.h"
#include "image_decoding.h"

#include <random>

namespace shf::test {
namespace {

class Gif : public testing::Test {
  protected:
    void SetUp() override {
        if (image_codec_version("gif") == nullptr) GTEST_SKIP() << "no giflib";
    }
};
class Tiff : public testing::Test {
  protected:
    void SetUp() override {
        if (image_codec_version("tiff") == nullptr) GTEST_SKIP() << "no libtiff";
    }
};

// 256 colours that differ in each channel.
std::vector<std::array<uint8_t, 3>> palette_of(size_t count) {
    std::vector<std::array<uint8_t, 3>> palette;
    for (size_t i = 0; i < count; ++i)
        palette.push_back({static_cast<uint8_t>(i), static_cast<uint8_t>(3 * i + 1),
                           static_cast<uint8_t>(255 - 7 * i)});
    return palette;
}

Bytes coloured(const Bytes& pixels, const std::vector<std::array<uint8_t, 3>>& palette) {
    Bytes out;
    for (const uint8_t pixel : pixels)
        for (size_t c = 0; c < 3; ++c)
            out.push_back(pixel < palette.size() ? palette[pixel][c] : uint8_t{0});
    return out;
}

// ---- GIF ----------------------------------------------------------------------------------------

TEST_F(Gif, colours_of_a_palette) {
    const Bytes pixels = noise(37 * 29);
    for (const bool interlaced : {false, true})
        for (const bool local : {false, true}) {
            const GifSpec spec{.width = 37,
                               .height = 29,
                               .palette = palette_of(256),
                               .interlaced = interlaced,
                               .local_palette = local,
                               .frames = 3};
            const Decoded decoded = decode_image(gif_file(spec, pixels));
            EXPECT_EQ(decoded.type, (ArrayType{DType::u8, 3, {29, 37, 3}}));
            EXPECT_TRUE(decoded.bytes == coloured(pixels, spec.palette)) << interlaced << local;
        }
    EXPECT_EQ(decode_image(gif_file({.width = 2, .palette = palette_of(2)}, {1, 7})).bytes,
              coloured({1, 7}, palette_of(2)));
    EXPECT_EQ(decode_image(gif_file({.width = 3}, {0, 9, 255})).bytes,
              (Bytes{0, 0, 0, 9, 9, 9, 255, 255, 255}));
}

TEST_F(Gif, a_transparent_colour) {
    const GifSpec spec{.width = 2, .palette = palette_of(4), .transparent = 2};
    const Bytes file = gif_file(spec, {2, 3});
    EXPECT_EQ(decode_image(file).bytes, coloured({2, 3}, spec.palette));
    const Bytes rgba = decode_image(file, {.mode = Mode::rgba8}).bytes;
    EXPECT_EQ(rgba[3], 0);
    EXPECT_EQ(rgba[7], 255);
}

TEST_F(Gif, a_frame_in_a_larger_screen) {
    GifSpec spec{.width = 1,
                 .height = 1,
                 .palette = palette_of(8),
                 .left = 1,
                 .top = 1,
                 .screen_width = 3,
                 .screen_height = 2};
    EXPECT_EQ(decode_image(gif_file(spec, {5})).bytes, coloured({0, 0, 0, 0, 5, 0}, spec.palette));
    spec.transparent = 3;
    const Decoded decoded = decode_image(gif_file(spec, {5}), {.mode = Mode::rgba8});
    EXPECT_EQ(decoded.bytes[3], 0);
    EXPECT_EQ(decoded.bytes[4 * 4 + 3], 255);
    // And one that is larger than the screen says.
    spec.screen_width = spec.screen_height = 1;
    EXPECT_EQ(decode_image(gif_file(spec, {5})).type, (ArrayType{DType::u8, 3, {2, 2, 3}}));
}

TEST_F(Gif, steps_are_those_of_other_images) {
    const Bytes pixels = noise(40 * 30);
    const auto palette = palette_of(256);
    const Bytes gif = gif_file({.width = 40, .height = 30, .palette = palette}, pixels);
    const Bytes png = png_rgb(40, 30, coloured(pixels, palette));
    const ImageOptions steps{.mode = Mode::rgb,
                             .channels_first = true,
                             .resize = ImageOptions::Resize::exact,
                             .width = 21,
                             .height = 17,
                             .flip = ImageOptions::Flip::always};
    EXPECT_EQ(decode_image(gif, steps).bytes, decode_image(png, steps).bytes);
}

TEST_F(Gif, what_is_wrong_is_said) {
    std::string words;
    const Bytes file =
        gif_file({.width = 9, .height = 7, .palette = palette_of(16)}, Bytes(63, uint8_t{3}));
    for (size_t size = 0; size < file.size(); ++size)
        ASSERT_EQ(image_outcome(Bytes(file.begin(), file.begin() + static_cast<long>(size))),
                  SHF_E_FORMAT)
            << size;
    EXPECT_EQ(image_outcome({'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0, 0, 0, 0x3b}, {}, &words),
              SHF_E_FORMAT);
    EXPECT_NE(words.find("GIF: it has no image"), words.npos) << words;
    EXPECT_EQ(image_outcome({'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0, 0, 0, 7}, {}, &words),
              SHF_E_FORMAT);
    EXPECT_NE(words.find("unknown kind 7"), words.npos) << words;
    const Bytes large = gif_file({.screen_width = 65535, .screen_height = 65535}, {1});
    EXPECT_EQ(image_outcome(large, {}, &words), SHF_E_LIMIT);
    EXPECT_NE(words.find("65535x65535"), words.npos) << words;
}

// ---- TIFF ---------------------------------------------------------------------------------------

TEST_F(Tiff, colours) {
    const Bytes rgb = noise(11 * 7 * 3);
    for (const bool big_endian : {false, true})
        for (const uint32_t rows : {0U, 1U, 3U})
            EXPECT_EQ(
                decode_image(
                    tiff_file({.width = 11, .height = 7, .big_endian = big_endian, .rows = rows},
                              rgb))
                    .bytes,
                rgb);
    Bytes planes;
    for (size_t c = 0; c < 3; ++c)
        for (size_t i = c; i < rgb.size(); i += 3) planes.push_back(rgb[i]);
    for (const uint32_t rows : {0U, 2U})
        EXPECT_EQ(decode_image(
                      tiff_file({.width = 11, .height = 7, .planes = true, .rows = rows}, planes))
                      .bytes,
                  rgb);
}

TEST_F(Tiff, tiles) {
    const Bytes rgb = noise(37 * 21 * 3);
    Bytes tiles;
    for (uint32_t top = 0; top < 21; top += 16)
        for (uint32_t left = 0; left < 37; left += 16)
            for (uint32_t y = top; y < top + 16; ++y)
                for (uint32_t x = left; x < left + 16; ++x)
                    for (uint32_t c = 0; c < 3; ++c)
                        tiles.push_back(x < 37 && y < 21 ? rgb[(y * 37 + x) * 3 + c]
                                                         : uint8_t{0x55});
    EXPECT_EQ(decode_image(tiff_file({.width = 37, .height = 21, .tile = 16}, tiles)).bytes, rgb);
}

TEST_F(Tiff, levels_of_grey) {
    const auto grey = [](uint16_t bits, uint16_t photometric, Bytes data) {
        const TiffSpec spec{.width = 3, .bits = bits, .samples = 1, .photometric = photometric};
        return decode_image(tiff_file(spec, data), {.mode = Mode::l8}).bytes;
    };
    EXPECT_EQ(grey(8, 1, {0, 100, 255}), (Bytes{0, 100, 255}));
    EXPECT_EQ(grey(8, 0, {0, 100, 255}), (Bytes{255, 155, 0}));
    EXPECT_EQ(grey(1, 1, {0b10100000}), (Bytes{255, 0, 255}));
    EXPECT_EQ(grey(1, 0, {0b10100000}), (Bytes{0, 255, 0}));
    EXPECT_EQ(grey(2, 1, {0b00011100}), (Bytes{0, 85, 255}));
    EXPECT_EQ(grey(4, 1, {0x0f, 0x30}), (Bytes{0, 255, 51}));
    EXPECT_EQ(decode_image(tiff_file({.width = 2, .samples = 1, .photometric = 1}, {3, 4})).bytes,
              (Bytes{3, 3, 3, 4, 4, 4}));
}

TEST_F(Tiff, sixteen_bits) {
    for (const bool big_endian : {false, true}) {
        const Bytes low = {0x34, 0x12, 0xff, 0xff}, high = {0x12, 0x34, 0xff, 0xff};
        const Bytes file = tiff_file(
            {.width = 2, .bits = 16, .samples = 1, .photometric = 1, .big_endian = big_endian},
            big_endian ? high : low);
        EXPECT_EQ(decode_image(file, {.mode = Mode::l16}).numbers<uint16_t>(),
                  (std::vector<uint16_t>{0x1234, 0xffff}));
        EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).bytes,
                  (Bytes{static_cast<uint8_t>((0x1234 + 128) / 257), 255}));
        EXPECT_EQ(decode_image(file, {.mode = Mode::l}).numbers<float>()[0], 0x1234 / 65535.0F);
    }
}

TEST_F(Tiff, palettes) {
    Bytes palette;
    const auto colours = palette_of(16);
    for (size_t c = 0; c < 3; ++c)
        for (const auto& colour : colours) palette.push_back(colour[c]);
    const TiffSpec spec{.width = 3, .bits = 4, .samples = 1, .photometric = 3, .palette = palette};
    EXPECT_EQ(decode_image(tiff_file(spec, {0x1f, 0x70})).bytes, coloured({1, 15, 7}, colours));
}

TEST_F(Tiff, alpha) {
    const auto rgba = [](int extra, uint16_t samples, Bytes pixel) {
        return decode_image(tiff_file({.samples = samples, .extra = extra}, pixel),
                            {.mode = Mode::rgba8})
            .bytes;
    };
    EXPECT_EQ(rgba(2, 4, {10, 20, 30, 40}), (Bytes{10, 20, 30, 40}));
    EXPECT_EQ(rgba(1, 4, {10, 20, 30, 40}), (Bytes{63, 127, 191, 40}));  // divided out
    EXPECT_EQ(rgba(1, 4, {10, 20, 30, 0}), (Bytes{0, 0, 0, 0}));
    EXPECT_EQ(rgba(0, 4, {10, 20, 30, 40}), (Bytes{10, 20, 30, 255}));
    EXPECT_EQ(rgba(-1, 4, {10, 20, 30, 40}), (Bytes{10, 20, 30, 40}));
    EXPECT_EQ(rgba(2, 5, {10, 20, 30, 40, 50}), (Bytes{10, 20, 30, 40}));
    EXPECT_EQ(decode_image(tiff_file({.samples = 2, .photometric = 1, .extra = 2}, {9, 8}),
                           {.mode = Mode::rgba8})
                  .bytes,
              (Bytes{9, 9, 9, 8}));
}

TEST_F(Tiff, inks) {
    const TiffSpec spec{.samples = 4, .photometric = 5};
    EXPECT_EQ(decode_image(tiff_file(spec, {0, 0, 0, 0})).bytes, (Bytes{255, 255, 255}));
    EXPECT_EQ(decode_image(tiff_file(spec, {255, 0, 128, 0})).bytes, (Bytes{0, 255, 127}));
    EXPECT_EQ(decode_image(tiff_file(spec, {0, 0, 0, 255})).bytes, (Bytes{0, 0, 0}));
}

TEST_F(Tiff, orientation) {
    const TiffSpec spec{.width = 2, .samples = 1, .photometric = 1, .orientation = 6};
    const Bytes file = tiff_file(spec, {1, 2});
    EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).type, (ArrayType{DType::u8, 2, {1, 2}}));
    EXPECT_EQ(decode_image(file, {.mode = Mode::l8, .orient = true}).type,
              (ArrayType{DType::u8, 2, {2, 1}}));
}

TEST_F(Tiff, what_is_not_read_is_unsupported) {
    std::string words;
    const Bytes pixel(24, uint8_t{1});
    for (const TiffSpec& spec :
         {TiffSpec{.bits = 32}, TiffSpec{.bits = 12}, TiffSpec{.format = 3}, TiffSpec{.format = 2},
          TiffSpec{.compression = 34712}, TiffSpec{.compression = 6}, TiffSpec{.photometric = 6},
          TiffSpec{.photometric = 8}, TiffSpec{.photometric = 9}})
        EXPECT_EQ(image_outcome(tiff_file(spec, pixel), {}, &words), SHF_E_UNSUPPORTED) << words;
    EXPECT_NE(words.find("help: convert the image"), words.npos) << words;
}

TEST_F(Tiff, claims_are_limited) {
    std::string words;
    EXPECT_EQ(image_outcome(tiff_file({.width = 1U << 31, .height = 1U << 20}, {}), {}, &words),
              SHF_E_LIMIT)
        << words;
    EXPECT_EQ(image_outcome(tiff_file({.tile = 1U << 16}, {}), {}, &words), SHF_E_LIMIT) << words;
    EXPECT_NE(words.find("help: raise max_decoded"), words.npos) << words;
    EXPECT_EQ(image_outcome(tiff_file({.width = 0}, {}), {}, &words), SHF_E_FORMAT);
    EXPECT_EQ(image_outcome(tiff_file({.samples = 2}, {1, 2}), {}, &words), SHF_E_FORMAT);
}

// ---- Damage -------------------------------------------------------------------------------------

void expect_sound_errors(const Bytes& file, uint32_t seed) {
    std::minstd_rand dice(seed);
    for (int variant = 0; variant < 1000; ++variant) {
        Bytes damaged = file;
        for (uint32_t changes = 1 + static_cast<uint32_t>(dice() % 3); changes > 0; --changes)
            damaged[dice() % damaged.size()] = static_cast<uint8_t>(dice());
        if (dice() % 4 == 0) damaged.resize(dice() % damaged.size());
        std::string words;
        const int32_t code = image_outcome(
            damaged, {.mode = Mode::rgba8, .orient = variant % 2 == 0}, &words, 1 << 20);
        ASSERT_TRUE(code == SHF_OK || code == SHF_E_FORMAT || code == SHF_E_UNSUPPORTED ||
                    code == SHF_E_LIMIT)
            << code << words;
    }
}

TEST_F(Gif, a_thousand_damaged_files) {
    GifSpec spec{.width = 19, .height = 13, .palette = palette_of(64), .transparent = 3};
    spec.frames = 2;
    expect_sound_errors(gif_file(spec, noise(19 * 13)), 1);
    spec.interlaced = spec.local_palette = true;
    expect_sound_errors(gif_file(spec, noise(19 * 13)), 2);
}

TEST_F(Tiff, a_thousand_damaged_files) {
    expect_sound_errors(tiff_file({.width = 19, .height = 13, .rows = 4}, noise(19 * 13 * 3)), 3);
    expect_sound_errors(tiff_file({.width = 19,
                                   .height = 13,
                                   .bits = 16,
                                   .samples = 4,
                                   .planes = true,
                                   .big_endian = true,
                                   .extra = 1,
                                   .tile = 16},
                                  noise(4 * 2 * 16 * 16 * 2)),
                        4);
}

TEST_F(Tiff, every_prefix_is_an_error) {
    const Bytes file = tiff_file({.width = 9, .height = 7, .rows = 3}, noise(9 * 7 * 3));
    EXPECT_EQ(image_outcome(file), SHF_OK);
    for (size_t size = 0; size < file.size(); ++size)
        ASSERT_EQ(image_outcome(Bytes(file.begin(), file.begin() + static_cast<long>(size))),
                  SHF_E_FORMAT)
            << size;
}

}  // namespace
}  // namespace shf::test
