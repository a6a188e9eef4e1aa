// Images of every kind become the numbers of every mode.
#include "image_decoding.h"
#include "image_files.h"

namespace shf::test {
namespace {

uint8_t luma(const uint8_t* p) {
    return static_cast<uint8_t>((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
}

Bytes greys_of(const Bytes& rgb) {
    Bytes out;
    for (size_t i = 0; i < rgb.size(); i += 3) out.push_back(luma(&rgb[i]));
    return out;
}

Bytes planes_of(const Bytes& pixels, size_t channels) {
    Bytes out;
    for (size_t c = 0; c < channels; ++c)
        for (size_t i = c; i < pixels.size(); i += channels) out.push_back(pixels[i]);
    return out;
}

// All modes and layouts of an image without alpha whose colours are `rgb`.
void expect_all_modes(const Bytes& file, int64_t width, int64_t height, const Bytes& rgb) {
    const auto of = [&](Mode mode, bool channels_first = false) {
        return decode_image(file, {.mode = mode, .channels_first = channels_first});
    };
    EXPECT_EQ(of(Mode::rgb8).type, (ArrayType{DType::u8, 3, {height, width, 3}}));
    EXPECT_EQ(of(Mode::rgb8).bytes, rgb);
    EXPECT_EQ(of(Mode::rgb8, true).type, (ArrayType{DType::u8, 3, {3, height, width}}));
    EXPECT_EQ(of(Mode::rgb8, true).bytes, planes_of(rgb, 3));
    const Bytes greys = greys_of(rgb);
    for (const bool channels_first : {false, true}) {
        EXPECT_EQ(of(Mode::l8, channels_first).type, (ArrayType{DType::u8, 2, {height, width}}));
        EXPECT_EQ(of(Mode::l8, channels_first).bytes, greys);
    }
    Bytes rgba;
    for (size_t i = 0; i < rgb.size(); i += 3)
        rgba.insert(rgba.end(), {rgb[i], rgb[i + 1], rgb[i + 2], 255});
    EXPECT_EQ(of(Mode::rgba8).type, (ArrayType{DType::u8, 3, {height, width, 4}}));
    EXPECT_EQ(of(Mode::rgba8).bytes, rgba);
    EXPECT_EQ(of(Mode::rgba8, true).bytes, planes_of(rgba, 4));
    EXPECT_EQ(of(Mode::rgb16).type, (ArrayType{DType::u16, 3, {height, width, 3}}));
    EXPECT_EQ(of(Mode::rgb).type, (ArrayType{DType::f32, 3, {height, width, 3}}));
    EXPECT_EQ(of(Mode::l).type, (ArrayType{DType::f32, 2, {height, width}}));
    const auto expect_scaled = [](const Decoded& wide, const Decoded& real, const Bytes& bytes) {
        const auto shorts = wide.numbers<uint16_t>();
        const auto floats = real.numbers<float>();
        ASSERT_EQ(shorts.size(), bytes.size());
        ASSERT_EQ(floats.size(), bytes.size());
        for (size_t i = 0; i < bytes.size(); ++i) {
            EXPECT_EQ(shorts[i], bytes[i] * 257);
            EXPECT_EQ(floats[i], static_cast<float>(bytes[i]) / 255.0F);
        }
    };
    expect_scaled(of(Mode::rgb16), of(Mode::rgb), rgb);
    expect_scaled(of(Mode::rgb16, true), of(Mode::rgb, true), planes_of(rgb, 3));
    expect_scaled(of(Mode::l16), of(Mode::l), greys);
}

TEST(Image, jpeg_of_every_subsampling_is_what_turbo_jpeg_decodes) {
    const Bytes pixels = gradient(45, 31, 3);
    for (int subsampling = 0; subsampling < TJ_NUMSAMP; ++subsampling)
        for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
            const Bytes file = jpeg_file(45, 31, pixels, TJPF_RGB, subsampling, flags);
            Bytes expected(pixels.size());
            const tjhandle handle = tjInitDecompress();
            ASSERT_EQ(tjDecompress2(handle, file.data(), file.size(), expected.data(), 45, 0, 31,
                                    TJPF_RGB, 0),
                      0);
            tjDestroy(handle);
            SCOPED_TRACE("subsampling " + std::to_string(subsampling));
            expect_all_modes(file, 45, 31, expected);
        }
}

TEST(Image, grey_jpeg) {
    const Bytes file = jpeg_file(20, 10, Bytes(200, 130), TJPF_GRAY, TJSAMP_GRAY);
    EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).bytes, Bytes(200, 130));
    expect_all_modes(file, 20, 10, Bytes(600, 130));
}

TEST(Image, inks_of_a_jpeg_become_colours) {
    // Stored inverted, as Adobe does it: 255 is no ink. A step of quantization away.
    const auto expect_colour = [](const Bytes& inks, int red, int green, int blue) {
        Bytes pixels;
        for (int i = 0; i < 64; ++i) pixels.insert(pixels.end(), inks.begin(), inks.end());
        const Bytes file = jpeg_file(8, 8, pixels, TJPF_CMYK, TJSAMP_444);
        const Bytes colours = decode_image(file, {.mode = Mode::rgba8}).bytes;
        ASSERT_EQ(colours.size(), 256U);
        EXPECT_NEAR(colours[0], red, 2);
        EXPECT_NEAR(colours[1], green, 2);
        EXPECT_NEAR(colours[2], blue, 2);
        EXPECT_EQ(colours[3], 255);
        EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).bytes.size(), 64U);
    };
    expect_colour({255, 255, 255, 255}, 255, 255, 255);
    expect_colour({0, 255, 255, 255}, 0, 255, 255);
    expect_colour({255, 255, 255, 0}, 0, 0, 0);
    expect_colour({128, 255, 128, 128}, 64, 128, 64);
}

TEST(Image, png_of_every_depth_and_type_interlaced_or_not) {
    // 8 bits of each sample for 1, 2, 4 and 8 bits: v * 255 / (2^bits - 1).
    const int width = 13, height = 11;
    for (const bool interlaced : {false, true}) {
        for (const int bits : {1, 2, 4, 8}) {
            const size_t stride = static_cast<size_t>(width * bits + 7) / 8;
            const Bytes rows = noise(stride * height, static_cast<uint32_t>(bits));
            const auto sample = [&](size_t y, size_t x) {
                const size_t bit = x * static_cast<size_t>(bits);
                return rows[y * stride + bit / 8] >> (8 - bits - static_cast<int>(bit % 8)) &
                       ((1 << bits) - 1);
            };
            std::vector<png_color> palette;
            for (int i = 0; i < 1 << bits; ++i)
                palette.push_back({static_cast<png_byte>(i * 7), static_cast<png_byte>(255 - i),
                                   static_cast<png_byte>(i * 31 + 5)});
            Bytes grey, coloured;
            for (size_t y = 0; y < height; ++y)
                for (size_t x = 0; x < width; ++x) {
                    const int value = sample(y, x);
                    grey.insert(grey.end(), 3,
                                static_cast<uint8_t>(value * 255 / ((1 << bits) - 1)));
                    const png_color& c = palette[static_cast<size_t>(value)];
                    coloured.insert(coloured.end(), {c.red, c.green, c.blue});
                }
            SCOPED_TRACE("bits " + std::to_string(bits));
            PngSpec spec{.width = width,
                         .height = height,
                         .type = PNG_COLOR_TYPE_GRAY,
                         .bits = bits,
                         .interlaced = interlaced};
            expect_all_modes(png_file(spec, rows), width, height, grey);
            spec.type = PNG_COLOR_TYPE_PALETTE;
            spec.palette = palette;
            expect_all_modes(png_file(spec, rows), width, height, coloured);
        }
        const Bytes rgb = noise(width * height * 3);
        expect_all_modes(
            png_file({.width = width, .height = height, .interlaced = interlaced}, rgb), width,
            height, rgb);
    }
}

TEST(Image, alpha_is_kept_dropped_or_opaque) {
    const Bytes rgba = noise(5 * 4 * 4);
    Bytes rgb, opaque;
    for (size_t i = 0; i < rgba.size(); i += 4)
        rgb.insert(rgb.end(), {rgba[i], rgba[i + 1], rgba[i + 2]});
    const Bytes file = png_file({.width = 5, .height = 4, .type = PNG_COLOR_TYPE_RGB_ALPHA}, rgba);
    EXPECT_EQ(decode_image(file, {.mode = Mode::rgba8}).bytes, rgba);
    EXPECT_EQ(decode_image(file).bytes, rgb);
    EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).bytes, greys_of(rgb));

    const Bytes grey_file =
        png_file({.width = 2, .height = 1, .type = PNG_COLOR_TYPE_GRAY_ALPHA}, {10, 20, 30, 40});
    EXPECT_EQ(decode_image(grey_file, {.mode = Mode::rgba8}).bytes,
              (Bytes{10, 10, 10, 20, 30, 30, 30, 40}));
    EXPECT_EQ(decode_image(grey_file).bytes, (Bytes{10, 10, 10, 30, 30, 30}));
    EXPECT_EQ(decode_image(grey_file, {.mode = Mode::l8}).bytes, (Bytes{10, 30}));
}

TEST(Image, transparent_colours_of_png_become_alpha) {
    const png_color_16 key{.index = 0, .red = 7, .green = 8, .blue = 9, .gray = 2};
    EXPECT_EQ(decode_image(png_file({.width = 2, .transparent = &key}, {7, 8, 9, 7, 8, 10}),
                           {.mode = Mode::rgba8})
                  .bytes,
              (Bytes{7, 8, 9, 0, 7, 8, 10, 255}));
    const PngSpec two_bits{.width = 4, .type = PNG_COLOR_TYPE_GRAY, .bits = 2, .transparent = &key};
    EXPECT_EQ(decode_image(png_file(two_bits, {0x1b}), {.mode = Mode::rgba8}).bytes,
              (Bytes{0, 0, 0, 255, 85, 85, 85, 255, 170, 170, 170, 0, 255, 255, 255, 255}));
    EXPECT_EQ(decode_image(png_file(two_bits, {0x1b}), {.mode = Mode::l8}).bytes,
              (Bytes{0, 85, 170, 255}));
    const PngSpec palette{.width = 2,
                          .type = PNG_COLOR_TYPE_PALETTE,
                          .palette = {{1, 2, 3}, {4, 5, 6}},
                          .palette_alpha = {100}};
    EXPECT_EQ(decode_image(png_file(palette, {0, 1}), {.mode = Mode::rgba8}).bytes,
              (Bytes{1, 2, 3, 100, 4, 5, 6, 255}));
    EXPECT_EQ(decode_image(png_file(palette, {0, 1})).bytes, (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST(Image, sixteen_bits_are_kept_where_the_mode_has_room) {
    const PngSpec grey{.width = 3, .type = PNG_COLOR_TYPE_GRAY, .bits = 16};
    const Bytes file = png_file(grey, {0x12, 0x34, 0xff, 0xff, 0, 0x80});
    const std::vector<uint16_t> values = {0x1234, 0xffff, 0x80};
    EXPECT_EQ(decode_image(file, {.mode = Mode::l16}).numbers<uint16_t>(), values);
    EXPECT_EQ(
        decode_image(file, {.mode = Mode::rgb16}).numbers<uint16_t>(),
        (std::vector<uint16_t>{0x1234, 0x1234, 0x1234, 0xffff, 0xffff, 0xffff, 0x80, 0x80, 0x80}));
    // 0x1234 / 257 is 18.13, 0x80 / 257 is just under a half.
    EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).bytes, (Bytes{18, 255, 0}));
    const auto floats = decode_image(file, {.mode = Mode::l}).numbers<float>();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(floats[i], static_cast<float>(values[i]) / 65535.0F);

    const PngSpec colour{.width = 1, .bits = 16};
    const Bytes rgb = png_file(colour, {0x10, 0, 0x20, 0, 0x40, 0});
    EXPECT_EQ(decode_image(rgb, {.mode = Mode::rgb16}).numbers<uint16_t>(),
              (std::vector<uint16_t>{0x1000, 0x2000, 0x4000}));
    EXPECT_EQ(
        decode_image(rgb, {.mode = Mode::l16}).numbers<uint16_t>(),
        std::vector<uint16_t>{(0x1000 * 19595 + 0x2000 * 38470 + 0x4000 * 7471 + 0x8000) >> 16});
    for (const bool channels_first : {false, true})
        EXPECT_EQ(decode_image(rgb, {.mode = Mode::rgb, .channels_first = channels_first})
                      .numbers<float>()[2],
                  16384.0F / 65535.0F);
}

#ifdef SHF_HAVE_WEBP
TEST(Image, webp) {
    const Bytes rgb = gradient(40, 30, 3);
    expect_all_modes(webp_file(40, 30, rgb, 3, true), 40, 30, rgb);
    Bytes rgba = gradient(40, 30, 4);
    for (size_t i = 3; i < rgba.size(); i += 4) rgba[i] |= 1;  // lossless drops unseen colours
    const Bytes file = webp_file(40, 30, rgba, 4, true);
    EXPECT_EQ(decode_image(file, {.mode = Mode::rgba8}).bytes, rgba);
    Bytes without;
    for (size_t i = 0; i < rgba.size(); i += 4)
        without.insert(without.end(), {rgba[i], rgba[i + 1], rgba[i + 2]});
    EXPECT_EQ(decode_image(file).bytes, without);
    // Lossy: near the original, which a wrong order of channels or rows would not be.
    const Bytes lossy = decode_image(webp_file(40, 30, Bytes(3600, 100), 3, false)).bytes;
    for (const uint8_t value : lossy) EXPECT_NEAR(value, 100, 3);
}

TEST(Image, animated_webp_is_refused) {
    // VP8X with the animation flag (RFC 9649 section 2.7), and a canvas of 1x1.
    const std::string head = "RIFF\x16" + std::string(3, '\0') + "WEBPVP8X";
    Bytes whole(head.begin(), head.end());
    whole.insert(whole.end(), {10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    std::string words;
    EXPECT_EQ(image_outcome(whole, {}, &words), SHF_E_UNSUPPORTED);
    EXPECT_NE(words.find("animation"), words.npos) << words;
}
#endif

// Where EXIF orientation o puts the pixel (x, y) of a stored image of 3x2, from the table of
// CIPA DC-008 section 4.6.4.
TEST(Image, every_orientation) {
    const Bytes stored = {1, 2, 3, 4, 5, 6};
    struct Case {
        int64_t width;
        Bytes pixels;
    };
    const Case cases[] = {{3, {1, 2, 3, 4, 5, 6}}, {3, {3, 2, 1, 6, 5, 4}}, {3, {6, 5, 4, 3, 2, 1}},
                          {3, {4, 5, 6, 1, 2, 3}}, {2, {1, 4, 2, 5, 3, 6}}, {2, {4, 1, 5, 2, 6, 3}},
                          {2, {6, 3, 5, 2, 4, 1}}, {2, {3, 6, 2, 5, 1, 4}}};
    for (uint8_t orientation = 1; orientation <= 8; ++orientation)
        for (const bool big_endian : {false, true}) {
            PngSpec spec{.width = 3, .height = 2, .type = PNG_COLOR_TYPE_GRAY};
            spec.exif = exif_block(orientation, big_endian);
            const Bytes file = png_file(spec, stored);
            const Case& expected = cases[orientation - 1];
            const Decoded turned = decode_image(file, {.mode = Mode::l8, .orient = true});
            EXPECT_EQ(turned.type, (ArrayType{DType::u8, 2, {6 / expected.width, expected.width}}));
            EXPECT_EQ(turned.bytes, expected.pixels) << int{orientation};
            EXPECT_EQ(decode_image(file, {.mode = Mode::l8}).bytes, stored);
        }
}

TEST(Image, orientation_of_larger_images_of_every_pixel_size) {
    // Turning by 90 degrees (6) and back (8) in every size of a pixel.
    const int width = 70, height = 37;
    const Bytes rgb = gradient(width, height, 3);
    const Bytes jpeg = jpeg_file(width, height, rgb);
    for (const Mode mode : {Mode::rgb8, Mode::l8, Mode::rgba8}) {
        const Decoded plain = decode_image(jpeg, {.mode = mode});
        const Decoded turned =
            decode_image(with_exif(jpeg, exif_block(6, true)), {.mode = mode, .orient = true});
        ASSERT_EQ(turned.type.shape[0], width);
        ASSERT_EQ(turned.type.shape[1], height);
        const size_t size = plain.bytes.size() / (width * height);
        for (size_t y = 0; y < height; ++y)
            for (size_t x = 0; x < width; ++x)
                ASSERT_EQ(std::memcmp(&plain.bytes[(y * width + x) * size],
                                      &turned.bytes[(x * height + height - 1 - y) * size], size),
                          0);
    }
    const PngSpec wide{.width = 2, .height = 1, .bits = 16, .exif = exif_block(8, false)};
    EXPECT_EQ(decode_image(png_file(wide, {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}),
                           {.mode = Mode::rgb16, .orient = true})
                  .numbers<uint16_t>(),
              (std::vector<uint16_t>{4, 5, 6, 1, 2, 3}));
}

TEST(Image, damaged_exif_is_no_orientation) {
    const Bytes jpeg = jpeg_file(4, 2, gradient(4, 2, 3));
    const Bytes good = exif_block(6, false);
    const auto is_turned = [&](const Bytes& block) {
        return decode_image(with_exif(jpeg, block), {.orient = true}).type.shape[0] == 4;
    };
    EXPECT_TRUE(is_turned(good));
    for (size_t size = 0; size < 22; ++size)
        EXPECT_FALSE(
            is_turned(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))));
    const auto with = [&](size_t at, uint8_t byte) {
        Bytes block = good;
        block[at] = byte;
        return block;
    };
    EXPECT_FALSE(is_turned(with(18, 0)));
    EXPECT_FALSE(is_turned(with(18, 9)));
    EXPECT_FALSE(is_turned(with(12, 4)));    // not a SHORT
    EXPECT_FALSE(is_turned(with(7, 0xff)));  // a directory at 4 GiB
    EXPECT_FALSE(is_turned(with(2, 43)));
}

TEST(Image, crops_and_flips) {
    const Bytes pixels = gradient(9, 6, 1);
    const Bytes file = png_grey(9, 6, pixels);
    const auto part = [&](size_t left, size_t top, size_t width, size_t height, bool flipped) {
        Bytes out;
        for (size_t y = 0; y < height; ++y)
            for (size_t x = 0; x < width; ++x)
                out.push_back(pixels[(top + y) * 9 + left + (flipped ? width - 1 - x : x)]);
        return out;
    };
    ImageOptions options{
        .mode = Mode::l8, .crop = ImageOptions::Crop::centre, .crop_width = 4, .crop_height = 3};
    // CenterCrop of torchvision: round(5 / 2.0) is 2 and round(3 / 2.0) is 2, halves to even.
    EXPECT_EQ(decode_image(file, options).bytes, part(2, 2, 4, 3, false));
    options.flip = ImageOptions::Flip::always;
    EXPECT_EQ(decode_image(file, options).bytes, part(2, 2, 4, 3, true));
    options.crop = ImageOptions::Crop::none;
    EXPECT_EQ(decode_image(file, options).bytes, part(0, 0, 9, 6, true));
    options.crop = ImageOptions::Crop::centre;
    options.crop_width = 10;
    std::string words;
    EXPECT_EQ(image_outcome(file, options, &words), SHF_E_FORMAT);
    EXPECT_NE(words.find("9x6 is smaller than its crop, 10x3"), words.npos) << words;

    // At random: every place comes, a mask goes with its image, and the key decides.
    options = {.mode = Mode::l8,
               .crop = ImageOptions::Crop::random,
               .crop_width = 8,
               .crop_height = 5,
               .flip = ImageOptions::Flip::random};
    const Bytes mask = png_grey(9, 6, noise(54));
    std::vector<int> seen(8);
    for (uint64_t random = 0; random < 200; ++random) {
        const Decoded image = decode_image(file, options, random);
        EXPECT_EQ(decode_image(file, options, random).bytes, image.bytes);
        for (size_t place = 0; place < 8; ++place)
            if (image.bytes == part(place & 1, place >> 1 & 1, 8, 5, place >= 4)) {
                ++seen[place];
                const Bytes of_mask = decode_image(mask, options, random).bytes;
                const Bytes all = noise(54);
                const size_t x = place >= 4 ? 7 : 0;
                EXPECT_EQ(of_mask[x], all[(place >> 1 & 1) * 9 + (place & 1)]);
            }
    }
    int all = 0;
    for (const int count : seen) {
        EXPECT_GT(count, 5);
        all += count;
    }
    EXPECT_EQ(all, 200);
}

TEST(Image, flips_every_kind_of_number) {
    const Bytes file = png_rgb(2, 1, {1, 2, 3, 4, 5, 6});
    const auto flipped = [&](Mode mode, bool channels_first) {
        return decode_image(
            file,
            {.mode = mode, .channels_first = channels_first, .flip = ImageOptions::Flip::always});
    };
    EXPECT_EQ(flipped(Mode::rgb8, false).bytes, (Bytes{4, 5, 6, 1, 2, 3}));
    EXPECT_EQ(flipped(Mode::rgb8, true).bytes, (Bytes{4, 1, 5, 2, 6, 3}));
    EXPECT_EQ(flipped(Mode::rgba8, false).bytes, (Bytes{4, 5, 6, 255, 1, 2, 3, 255}));
    EXPECT_EQ(flipped(Mode::rgb16, false).numbers<uint16_t>()[0], 4 * 257);
    EXPECT_EQ(flipped(Mode::rgb, false).numbers<float>()[5], 3.0F / 255.0F);
    EXPECT_EQ(flipped(Mode::rgb, true).numbers<float>()[1], 1.0F / 255.0F);
    EXPECT_EQ(flipped(Mode::l16, false).numbers<uint16_t>()[1], 2 * 257);
}

TEST(Image, sides_of_zero_are_wrong_use) {
    using Resize = ImageOptions::Resize;
    for (const ImageOptions& options :
         {ImageOptions{.resize = Resize::shorter},
          ImageOptions{.resize = Resize::exact, .width = 1},
          ImageOptions{.resize = Resize::fit, .height = 1},
          ImageOptions{.crop = ImageOptions::Crop::centre, .crop_width = 1}}) {
        try {
            image_decoder(options, test_max_decoded);
            ADD_FAILURE();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_USAGE);
        }
    }
}

}  // namespace
}  // namespace shf::test
