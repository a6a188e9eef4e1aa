// Damaged, cut and lying images: errors of the right class, and never a success with missing
// pixels.
#include "image_decoding.h"
#include "image_files.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace shf::test {
namespace {

struct Sample {
    std::string name;
    Bytes file;
};

std::vector<Sample> small_files() {
    const Bytes rgb = noise(9 * 7 * 3);
    std::vector<Sample> files = {
        {"jpeg", with_exif(jpeg_file(9, 7, rgb), exif_block(6, true))},
        {"progressive", jpeg_file(9, 7, rgb, TJPF_RGB, TJSAMP_444, TJFLAG_PROGRESSIVE)},
        {"png", png_rgb(9, 7, rgb)},
        {"interlaced", png_file({.width = 9, .height = 7, .interlaced = true}, rgb)},
        {"palette", png_file({.width = 9,
                              .height = 7,
                              .type = PNG_COLOR_TYPE_PALETTE,
                              .bits = 2,
                              .palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 0, 0}},
                              .palette_alpha = {3, 4},
                              .exif = exif_block(3, false)},
                             noise(21))},
    };
#ifdef SHF_HAVE_WEBP
    files.push_back({"webp_lossy", webp_file(9, 7, rgb, 3, false)});
    files.push_back({"webp_lossless", webp_file(9, 7, rgb, 3, true)});
    files.push_back({"webp_alpha", webp_file(9, 7, noise(9 * 7 * 4), 4, false)});
#endif
    return files;
}

const ImageOptions all_steps{.mode = Mode::rgba8,
                             .resize = ImageOptions::Resize::exact,
                             .width = 5,
                             .height = 4,
                             .orient = true};

TEST(ImageDamage, every_prefix_is_an_error) {
    for (const Sample& sample : small_files())
        for (const ImageOptions& options : {ImageOptions{}, all_steps}) {
            EXPECT_EQ(image_outcome(sample.file, options), SHF_OK) << sample.name;
            for (size_t size = 0; size < sample.file.size(); ++size)
                ASSERT_EQ(
                    image_outcome(Bytes(sample.file.begin(),
                                        sample.file.begin() + static_cast<std::ptrdiff_t>(size)),
                                  options),
                    SHF_E_FORMAT)
                    << sample.name << " of " << size << " bytes";
        }
}

TEST(ImageDamage, bytes_after_the_end_are_not_looked_at) {
    for (Sample& sample : small_files()) {
        const Bytes expected = decode_image(sample.file).bytes;
        sample.file.insert(sample.file.end(), 50, 0x17);
        EXPECT_EQ(decode_image(sample.file).bytes, expected) << sample.name;
    }
}

TEST(ImageDamage, every_damaged_byte_is_an_error_or_an_image) {
    for (const Sample& sample : small_files()) {
        const bool has_checksums = sample.file[1] == 'P';
        for (size_t i = 0; i < sample.file.size(); ++i)
            for (const int change : {1, 0x80, 0xff}) {
                Bytes file = sample.file;
                file[i] = static_cast<uint8_t>(file[i] ^ change);
                for (const ImageOptions& options : {ImageOptions{}, all_steps}) {
                    const int32_t code = image_outcome(file, options);
                    const bool known =
                        code == SHF_E_FORMAT || code == SHF_E_UNSUPPORTED || code == SHF_E_LIMIT;
                    // The checksums of PNG cover every byte that says something.
                    ASSERT_TRUE(known || (code == SHF_OK && !has_checksums))
                        << sample.name << " byte " << i << " code " << code;
                }
            }
    }
}

TEST(ImageDamage, words_of_the_decoder_are_in_the_message) {
    std::string words;
    Bytes file = jpeg_file(64, 64, noise(64 * 64 * 3));
    file.resize(file.size() / 2);
    EXPECT_EQ(image_outcome(file, {}, &words), SHF_E_FORMAT);
    EXPECT_NE(words.find("JPEG: Premature end of JPEG file"), words.npos) << words;
    file = png_rgb(9, 7, noise(9 * 7 * 3));
    file[50] ^= 1;
    EXPECT_EQ(image_outcome(file, {}, &words), SHF_E_FORMAT);
    EXPECT_NE(words.find("PNG: IDAT: "), words.npos) << words;
}

TEST(ImageDamage, indexes_that_the_palette_does_not_have_are_black) {
    const PngSpec spec{
        .width = 2, .type = PNG_COLOR_TYPE_PALETTE, .bits = 8, .palette = {{1, 2, 3}, {4, 5, 6}}};
    EXPECT_EQ(decode_image(png_file(spec, {1, 2})).bytes, (Bytes{4, 5, 6, 0, 0, 0}));
}

Bytes jpeg_bomb() {
    Bytes file = jpeg_file(8, 8, noise(192));
    for (size_t i = 0; i + 9 < file.size(); ++i)
        if (file[i] == 0xff && file[i + 1] == 0xc0) {
            std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(i) + 5, 4, uint8_t{0xff});
            break;
        }
    return file;
}

Bytes png_bomb() {
    Bytes file = png_rgb(1, 1, {1, 2, 3});
    for (const size_t at : {size_t{16}, size_t{20}}) file[at + 2] = file[at + 3] = 0xff;
    const uint32_t crc = static_cast<uint32_t>(crc32(0, &file[12], 17));
    for (size_t i = 0; i < 4; ++i) file[29 + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
    return file;
}

TEST(ImageDamage, bombs_are_refused_by_their_headers) {
    std::vector<Bytes> bombs = {jpeg_bomb(), png_bomb()};
#ifdef SHF_HAVE_WEBP
    // The size of a lossless image: twice 14 bits behind the signature byte (RFC 9649 section 3.4).
    Bytes webp = webp_file(1, 1, {1, 2, 3}, 3, true);
    ASSERT_EQ(webp[20], 0x2f);
    for (const size_t at : {size_t{21}, size_t{22}, size_t{23}}) webp[at] = 0xff;
    webp[24] = static_cast<uint8_t>(webp[24] | 0x0f);
    bombs.push_back(webp);
#endif
    for (const Bytes& file : bombs) {
        std::string words;
        const auto decoder = image_decoder({}, 256 << 20);
        try {
            (void)decoder->measure(file, 0);
            ADD_FAILURE() << file[0];
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_LIMIT);
            words = error.what();
        }
        EXPECT_NE(words.find("max_decoded=268435456"), words.npos) << words;
        EXPECT_NE(words.find("help: raise max_decoded"), words.npos) << words;
    }
}

// A progressive JPEG is decoded when all of its coefficients are there, which take more than its
// pixels: 2 bytes for each, and half of the colours' here.
TEST(ImageDamage, coefficients_over_the_limit_are_refused) {
    const Bytes pixels = gradient(64, 48, 3);
    const struct {
        int subsampling;
        uint64_t coefficients;
    } cases[] = {{TJSAMP_444, 64 * 48 * 3 * 2},
                 {TJSAMP_422, 64 * 48 * 2 * 2},
                 {TJSAMP_420, 64 * 48 * 2 + 2 * 32 * 24 * 2}};
    for (const auto& [subsampling, coefficients] : cases) {
        const Bytes file = jpeg_file(64, 48, pixels, TJPF_RGB, subsampling, TJFLAG_PROGRESSIVE);
        const uint64_t needed = std::max<uint64_t>(coefficients, pixels.size());
        EXPECT_EQ(image_outcome(file, {}, nullptr, needed), SHF_OK);
        std::string words;
        EXPECT_EQ(image_outcome(file, {}, &words, needed - 1), SHF_E_LIMIT);
        EXPECT_NE(words.find("max_decoded=" + std::to_string(needed - 1)), words.npos) << words;
        // However small the result is.
        EXPECT_EQ(
            image_outcome(file, {.resize = ImageOptions::Resize::exact, .width = 1, .height = 1},
                          nullptr, needed - 1),
            SHF_E_LIMIT);
        // In one scan there is a line of blocks at a time.
        EXPECT_EQ(image_outcome(jpeg_file(64, 48, pixels, TJPF_RGB, subsampling), {}, nullptr,
                                pixels.size()),
                  SHF_OK);
    }
    // A first scan of one component means more scans, in whatever kind of JPEG.
    Bytes scans = jpeg_file(64, 48, pixels, TJPF_RGB, TJSAMP_444);
    const std::array<uint8_t, 5> three = {0xff, 0xda, 0, 12, 3}, one = {0xff, 0xda, 0, 8, 1};
    const auto scan = std::search(scans.begin(), scans.end(), three.begin(), three.end());
    ASSERT_NE(scan, scans.end());
    std::copy(one.begin(), one.end(), scan);
    scans.erase(scan + 7, scan + 11);  // the other components
    EXPECT_EQ(image_outcome(scans, {}, nullptr, pixels.size()), SHF_E_LIMIT);
    EXPECT_NE(image_outcome(scans, {}, nullptr, 2 * pixels.size()), SHF_E_LIMIT);
    // Blocks go up to whole MCUs, which makes more of a line of pixels.
    const Bytes line =
        jpeg_file(1, 160, gradient(1, 160, 3), TJPF_RGB, TJSAMP_411, TJFLAG_PROGRESSIVE);
    EXPECT_EQ(image_outcome(line, {}, nullptr, 20 * 128 * (4 + 1 + 1)), SHF_OK);
    EXPECT_EQ(image_outcome(line, {}, nullptr, 20 * 128 * (4 + 1 + 1) - 1), SHF_E_LIMIT);
}

TEST(ImageDamage, results_over_the_limit_are_refused) {
    const Bytes file = png_rgb(10, 10, noise(300));
    ImageOptions options;
    EXPECT_EQ(image_outcome(file, options, nullptr, 300), SHF_OK);
    EXPECT_EQ(image_outcome(file, options, nullptr, 299), SHF_E_LIMIT);
    options.mode = Mode::rgb;
    EXPECT_EQ(image_outcome(file, options, nullptr, 1200), SHF_OK);
    EXPECT_EQ(image_outcome(file, options, nullptr, 1199), SHF_E_LIMIT);
    options.mode = Mode::l8;  // smaller than what is stored
    EXPECT_EQ(image_outcome(file, options, nullptr, 299), SHF_E_LIMIT);
    using Resize = ImageOptions::Resize;
    const uint32_t most = 0xffffffff;
    EXPECT_EQ(image_outcome(file, {.resize = Resize::exact, .width = 100000, .height = 100000}),
              SHF_E_LIMIT);
    EXPECT_EQ(image_outcome(file, {.resize = Resize::exact, .width = most, .height = most}),
              SHF_E_LIMIT);
    EXPECT_EQ(image_outcome(file, {.resize = Resize::shorter, .width = most}), SHF_E_LIMIT);
    // The tables of a resize count, too: a line of 900,000 pixels and its weights.
    const Bytes line = png_grey(900000, 1, Bytes(900000));
    options = {.mode = Mode::l8, .resize = Resize::exact, .width = 800000, .height = 1};
    EXPECT_EQ(image_outcome(line, options, nullptr, 4 << 20), SHF_E_LIMIT);
}

TEST(ImageDamage, other_formats_are_named) {
    struct Case {
        std::string start;
        const char* name;
    };
    const Case cases[] = {{"BM1234", "BMP"},
                          {"qoif1234", "QOI"},
                          {std::string("\0\0\0\x20", 4) + "ftypheic", "HEIF"},
                          {"P6\n1 1\n255\n", "Netpbm"}};
    for (const Case& c : cases) {
        std::string words;
        EXPECT_EQ(image_outcome(Bytes(c.start.begin(), c.start.end()), {}, &words),
                  SHF_E_UNSUPPORTED);
        EXPECT_NE(words.find(c.name), words.npos) << words;
        EXPECT_NE(words.find("help: "), words.npos) << words;
    }
    EXPECT_EQ(image_outcome({'h', 'e', 'l', 'l', 'o'}), SHF_E_FORMAT);
    EXPECT_EQ(image_outcome({}), SHF_E_FORMAT);
}

TEST(ImageDamage, what_was_measured_must_be_what_is_decoded) {
    const auto decoder = image_decoder({}, test_max_decoded);
    const ArrayType type = decoder->measure(png_rgb(2, 3, noise(18)), 0).type;
    DecodeScratch scratch;
    Bytes out(type.bytes());
    EXPECT_THROW(decoder->decode(png_rgb(3, 2, noise(18)), 0, type, out, scratch), Error);
}

}  // namespace
}  // namespace shf::test
