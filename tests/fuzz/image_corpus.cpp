// Writes the first inputs of image_fuzz into a folder: image_corpus tests/fuzz/corpus/image. Each
// file is named after what it tests; findings of the fuzzer are added beside them.
#include "../unit/image_files.h"
#include "corpus_files.h"

#include <iostream>

int main(int argc, char** argv) {
    using namespace shf::test;
    if (argc != 2) {
        std::cerr << "usage: image_corpus FOLDER\n";
        return 2;
    }
    // First bytes, see image_fuzz.cpp.
    constexpr uint8_t rgb8 = 0, l8 = 1, rgba8 = 2, rgb16 = 3, l16 = 4, rgb = 5, l = 6;
    constexpr uint8_t hwc = 0, chw = 1, shorter = 2, exact = 4, fit = 6, centre = 8, random = 16,
                      flip = 32, orient = 64, larger = 128;
    constexpr uint8_t area = 8, padded = 16, changed = 32;  // of the first byte's quotient
    const Bytes colours = gradient(12, 9, 3);
    const Bytes jpeg = jpeg_file(12, 9, colours);
    Bytes two_frames = jpeg;
    for (size_t i = 0; i + 1 < jpeg.size(); ++i)
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xc0) {
            const auto frame = jpeg.begin() + static_cast<std::ptrdiff_t>(i);
            two_frames.insert(two_frames.begin() + static_cast<std::ptrdiff_t>(i), frame,
                              frame + 19);
            break;
        }
    const PngSpec grey{.width = 12, .height = 9, .type = PNG_COLOR_TYPE_GRAY};
    PngSpec palette{.width = 12, .height = 9, .type = PNG_COLOR_TYPE_PALETTE, .bits = 2};
    palette.palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
    palette.palette_alpha = {1, 2};
    PngSpec turned = grey;
    turned.exif = exif_block(5, true);
    PngSpec wide = grey;
    wide.bits = 16;
    struct Input {
        const char* name;
        uint8_t mode;
        int steps;
        Bytes file;
    };
    const std::vector<Input> inputs = {
        {"jpeg", rgb8, hwc, jpeg},
        {"jpeg_444", rgb, chw, jpeg_file(12, 9, colours, TJPF_RGB, TJSAMP_444)},
        {"jpeg_422_crop", rgb8, centre | flip, jpeg_file(12, 9, colours, TJPF_RGB, TJSAMP_422)},
        {"jpeg_440_fit", l8, fit, jpeg_file(12, 9, colours, TJPF_RGB, TJSAMP_440)},
        {"jpeg_411_larger", rgb16, exact | larger, jpeg_file(12, 9, colours, TJPF_RGB, TJSAMP_411)},
        {"jpeg_grey", l8, shorter, jpeg_file(12, 9, Bytes(108, 3), TJPF_GRAY, TJSAMP_GRAY)},
        {"jpeg_cmyk", rgb8, hwc, jpeg_file(12, 9, Bytes(432, 3), TJPF_CMYK, TJSAMP_444)},
        {"jpeg_progressive", rgba8, exact,
         jpeg_file(12, 9, colours, TJPF_RGB, TJSAMP_420, TJFLAG_PROGRESSIVE)},
        {"jpeg_reduced", rgb8, shorter | random, jpeg_file(96, 80, gradient(96, 80, 3))},
        {"jpeg_orientation", rgb8, orient | exact, with_exif(jpeg, exif_block(6, false))},
        {"jpeg_two_frames", rgb8, hwc, two_frames},
        {"jpeg_cut", rgb8, hwc, Bytes(jpeg.begin(), jpeg.end() - 9)},
        {"jpeg_area", rgb + 7 * area, chw | flip, jpeg_file(96, 80, gradient(96, 80, 3))},
        {"jpeg_area_turned", rgb8 + 7 * area, orient | larger,
         with_exif(jpeg_file(96, 80, gradient(96, 80, 3)), exif_block(6, false))},
        {"jpeg_padded", rgb + 7 * padded, exact | centre, jpeg},
        {"png_area", rgb + 7 * (area + padded), chw | orient | 8, png_rgb(12, 9, colours)},
        {"png_padded", rgba8 + 7 * padded, flip | random,
         png_file({.width = 12, .height = 9, .type = PNG_COLOR_TYPE_RGB_ALPHA}, noise(432))},
        {"png_colours", rgb8 + 7 * changed, chw | exact, png_rgb(12, 9, colours)},
        {"png_trivialaugment", rgb8 + 7 * changed, shorter, png_rgb(12, 9, colours)},
        {"png_randaugment", rgb + 7 * changed, fit | orient | random, png_grey(12, 9, noise(108))},
        {"png_colours_of_grey", rgb + 7 * changed, flip, png_grey(12, 9, noise(108))},
        {"png", rgb8, hwc, png_rgb(12, 9, colours)},
        {"png_interlaced", rgb8, chw,
         png_file({.width = 12, .height = 9, .interlaced = true}, colours)},
        {"png_palette", rgba8, exact, png_file(palette, noise(27))},
        {"png_16_bit", l16, shorter, png_file(wide, noise(216))},
        {"png_16_bit_as_float", l, fit | larger, png_file(wide, noise(216))},
        {"png_alpha", rgba8, exact | larger,
         png_file({.width = 12, .height = 9, .type = PNG_COLOR_TYPE_RGB_ALPHA}, noise(432))},
        {"png_grey_alpha", rgba8, hwc,
         png_file({.width = 12, .height = 9, .type = PNG_COLOR_TYPE_GRAY_ALPHA}, noise(216))},
        {"png_orientation", l8, orient, png_file(turned, noise(108))},
#ifdef SHF_HAVE_WEBP
        {"webp_lossy", rgb8, hwc, webp_file(12, 9, colours, 3, false)},
        {"webp_lossless", rgb8, chw, webp_file(12, 9, colours, 3, true)},
        {"webp_alpha", rgba8, exact, webp_file(12, 9, noise(432), 4, false)},
#endif
        {"gif", rgb8, hwc, {'G', 'I', 'F', '8', '9', 'a'}},
        {"nothing", rgb8, hwc, {}},
    };
    for (const Input& input : inputs) {
        std::string bytes{static_cast<char>(input.mode), static_cast<char>(input.steps)};
        bytes.append(input.file.begin(), input.file.end());
        if (!write_input(argv[1], input.name, bytes)) return 1;
    }
    return 0;
}
