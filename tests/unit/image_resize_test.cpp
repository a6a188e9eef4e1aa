// Resizing: sizes, and pixels against the definition of the filter.
#include "image/image_scratch.h"
#include "image/resample_kernels.h"
#include "image_decoding.h"
#include "image_files.h"

#include <algorithm>
#include <cmath>

namespace shf::test {
namespace {

using Resize = ImageOptions::Resize;

// One axis, written from the definition: a triangle as wide as the reduction, at least one sample
// to each side, normalised; rounded to whole numbers as the images in between are.
std::vector<double> resize_axis(const std::vector<double>& in, size_t resized) {
    const double size = static_cast<double>(in.size());
    const double scale = size / static_cast<double>(resized), support = std::max(scale, 1.0);
    std::vector<double> out;
    for (size_t i = 0; i < resized; ++i) {
        const double centre = (static_cast<double>(i) + 0.5) * scale;
        double sum = 0, weights = 0;
        for (size_t k = 0; k < in.size(); ++k) {
            const double distance = std::abs(static_cast<double>(k) + 0.5 - centre) / support;
            const double weight = std::max(1 - distance, 0.0);
            sum += weight * in[k];
            weights += weight;
        }
        out.push_back(std::floor(sum / weights + 0.5));
    }
    return out;
}

std::vector<double> resize_grey(const std::vector<double>& in, size_t width, size_t to_width,
                                size_t to_height) {
    const size_t height = in.size() / width;
    std::vector<double> lines, out(to_width * to_height);
    for (size_t y = 0; y < height; ++y) {
        const auto first = in.begin() + static_cast<std::ptrdiff_t>(y * width);
        const auto line =
            resize_axis({first, first + static_cast<std::ptrdiff_t>(width)}, to_width);
        lines.insert(lines.end(), line.begin(), line.end());
    }
    for (size_t x = 0; x < to_width; ++x) {
        std::vector<double> column;
        for (size_t y = 0; y < height; ++y) column.push_back(lines[y * to_width + x]);
        column = resize_axis(column, to_height);
        for (size_t y = 0; y < to_height; ++y) out[y * to_width + x] = column[y];
    }
    return out;
}

constexpr uint32_t sizes[][2] = {{20, 15}, {37, 29}, {36, 29}, {37, 5},  {1, 1},  {90, 70},
                                 {3, 80},  {80, 3},  {74, 58}, {18, 14}, {37, 1}, {200, 29}};

TEST(ImageResize, is_the_filter_of_its_definition) {
    const Bytes pixels = noise(37 * 29 * 4);
    for (const auto& [width, height] : sizes) {
        SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height));
        for (const int channels : {1, 3}) {
            const Bytes image(pixels.begin(), pixels.begin() + 37 * 29 * channels);
            const Bytes file = channels == 1 ? png_grey(37, 29, image) : png_rgb(37, 29, image);
            const auto ours = decode_image(file, {.mode = channels == 1 ? Mode::l8 : Mode::rgb8,
                                                  .resize = Resize::exact,
                                                  .width = width,
                                                  .height = height})
                                  .bytes;
            const auto step = static_cast<size_t>(channels);
            for (size_t c = 0; c < step; ++c) {
                std::vector<double> plane;
                for (size_t i = c; i < image.size(); i += step) plane.push_back(image[i]);
                const auto expected = resize_grey(plane, 37, width, height);
                ASSERT_EQ(ours.size(), expected.size() * step);
                for (size_t i = 0; i < expected.size(); ++i)
                    ASSERT_NEAR(ours[i * step + c], expected[i], 1) << i;
            }
        }
    }
}

TEST(ImageResize, keeps_sixteen_bits) {
    const Bytes rows = noise(37 * 29 * 2);
    const Bytes file =
        png_file({.width = 37, .height = 29, .type = PNG_COLOR_TYPE_GRAY, .bits = 16}, rows);
    std::vector<double> plane;
    for (size_t i = 0; i < rows.size(); i += 2) plane.push_back(rows[i] * 256 + rows[i + 1]);
    for (const auto& [width, height] : sizes) {
        const ImageOptions options{
            .mode = Mode::l16, .resize = Resize::exact, .width = width, .height = height};
        const auto ours = decode_image(file, options).numbers<uint16_t>();
        const auto expected = resize_grey(plane, 37, width, height);
        ASSERT_EQ(ours.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(ours[i], expected[i], 1);
    }
}

TEST(ImageResize, transparent_pixels_do_not_bleed) {
    // A red pixel beside a green one that cannot be seen: the result is red, half covered.
    const Bytes file =
        png_file({.width = 2, .type = PNG_COLOR_TYPE_RGB_ALPHA}, {200, 0, 0, 255, 0, 255, 0, 0});
    EXPECT_EQ(
        decode_image(file, {.mode = Mode::rgba8, .resize = Resize::exact, .width = 1, .height = 1})
            .bytes,
        (Bytes{199, 0, 0, 128}));
}

TEST(ImageResize, flat_images_stay_flat) {
    for (const int value : {0, 1, 128, 254, 255}) {
        const auto byte = static_cast<uint8_t>(value);
        const Bytes file = png_rgb(300, 7, Bytes(300 * 7 * 3, byte));
        for (const uint32_t side : {1U, 2U, 50U, 301U}) {
            const ImageOptions options{.resize = Resize::exact, .width = side, .height = side};
            EXPECT_EQ(decode_image(file, options).bytes, Bytes(size_t{3} * side * side, byte));
        }
    }
    // A row of 20,000 samples in one: weights of less than one unit of rounding each.
    const Bytes long_row = png_grey(20000, 1, Bytes(20000, 255));
    EXPECT_GE(
        decode_image(long_row, {.mode = Mode::l8, .resize = Resize::exact, .width = 1, .height = 1})
            .bytes[0],
        253);
}

TEST(ImageResize, sizes_follow_torchvision) {
    const auto size_of = [](int width, int height, Resize resize, uint32_t to_width,
                            uint32_t to_height = 0) {
        const Bytes file = png_grey(width, height, Bytes(static_cast<size_t>(width * height)));
        const ArrayType type =
            decode_image(
                file, {.mode = Mode::l8, .resize = resize, .width = to_width, .height = to_height})
                .type;
        return std::pair(type.shape[1], type.shape[0]);
    };
    using Size = std::pair<int64_t, int64_t>;
    EXPECT_EQ(size_of(500, 375, Resize::shorter, 256), Size(341, 256));
    EXPECT_EQ(size_of(375, 500, Resize::shorter, 256), Size(256, 341));
    EXPECT_EQ(size_of(500, 375, Resize::fit, 256, 256), Size(256, 192));
    EXPECT_EQ(size_of(375, 500, Resize::fit, 256, 256), Size(192, 256));
    EXPECT_EQ(size_of(500, 375, Resize::fit, 1000, 375), Size(500, 375));
    EXPECT_EQ(size_of(300, 1, Resize::fit, 100, 100), Size(100, 1));
    EXPECT_EQ(size_of(500, 375, Resize::exact, 10, 20), Size(10, 20));
}

TEST(ImageResize, crop_of_the_resized_image) {
    const Bytes file = png_rgb(37, 29, noise(37 * 29 * 3));
    for (const auto& [width, height] : sizes) {
        ImageOptions options{.resize = Resize::exact, .width = width, .height = height};
        const Bytes whole = decode_image(file, options).bytes;
        options.crop = ImageOptions::Crop::random;
        options.crop_width = (width + 1) / 2;
        options.crop_height = (height + 1) / 2;
        for (uint64_t random = 0; random < 5; ++random) {
            const Bytes part = decode_image(file, options, random).bytes;
            // The rows of the part are found in the whole, one below the other.
            bool found = false;
            for (size_t top = 0; top + options.crop_height <= height; ++top)
                for (size_t left = 0; left + options.crop_width <= width; ++left) {
                    bool same = true;
                    for (size_t y = 0; y < options.crop_height && same; ++y)
                        same = std::equal(
                            part.begin() + static_cast<std::ptrdiff_t>(y * options.crop_width * 3),
                            part.begin() +
                                static_cast<std::ptrdiff_t>((y + 1) * options.crop_width * 3),
                            whole.begin() +
                                static_cast<std::ptrdiff_t>(((top + y) * width + left) * 3));
                    found = found || same;
                }
            EXPECT_TRUE(found) << width << "x" << height;
        }
    }
}

TEST(ImageResize, jpeg_is_reduced_while_it_is_decoded) {
    const Bytes file = jpeg_file(403, 301, gradient(403, 301, 3));
    const tjhandle handle = tjInitDecompress();
    struct Case {
        uint32_t width, height;
        int reduction;
    };
    // At least the size that is wanted must be left: 403 / 2 is 201.5.
    for (const Case& c : {Case{202, 150, 1}, Case{201, 150, 2}, Case{100, 75, 4}, Case{50, 37, 8},
                          Case{50, 80, 2}, Case{1, 1, 8}, Case{403, 301, 1}}) {
        const int width = (403 + c.reduction - 1) / c.reduction;
        const int height = (301 + c.reduction - 1) / c.reduction;
        Bytes reduced(static_cast<size_t>(width * height * 3));
        ASSERT_EQ(tjDecompress2(handle, file.data(), file.size(), reduced.data(), width, 0, height,
                                TJPF_RGB, 0),
                  0);
        const ImageOptions options{.resize = Resize::exact, .width = c.width, .height = c.height};
        EXPECT_EQ(decode_image(file, options).bytes,
                  decode_image(png_rgb(width, height, reduced), options).bytes);
        // Lying on its side, width and height change places.
        const ImageOptions turned{
            .resize = Resize::exact, .width = c.height, .height = c.width, .orient = true};
        PngSpec spec{.width = width, .height = height, .exif = exif_block(6, true)};
        EXPECT_EQ(decode_image(with_exif(file, exif_block(6, true)), turned).bytes,
                  decode_image(png_file(spec, reduced), turned).bytes);
    }
    tjDestroy(handle);
}

TEST(ImageResize, fast_kernels_give_the_same_bytes) {
    constexpr size_t width = 61, height = 5;
    const ResampleKernels& fast = resample_kernels();
    const ResampleKernels& portable = portable_resample_kernels();
    const Bytes in = noise(width * 4 * height + 16);
    FilterTable table;
    table.most = 6;
    uint32_t seed = 5;
    for (uint32_t first = 0; first < width - 1; ++first) {
        const uint32_t count = std::min<uint32_t>(first % 7, width - first);
        table.taps.push_back({first, std::min<uint32_t>(count, 6)});
        int32_t left = 1 << weight_bits;  // the last one gets it all
        for (uint32_t i = 0; i < 6; ++i) {
            seed = seed * 1664525 + 1013904223;
            const int32_t weight =
                i < table.taps.back().count
                    ? static_cast<int32_t>((seed >> 8) % static_cast<uint32_t>(left + 1))
                    : 0;
            table.weights.push_back(weight);
            left -= weight;
        }
    }
    for (size_t i = 0; i < table.weights.size(); i += 2) {
        table.pairs.push_back(pair_high(table.weights[i], table.weights[i + 1]));
        table.pairs.push_back(pair_low(table.weights[i], table.weights[i + 1]));
    }
    for (const size_t channels : {size_t{1}, size_t{3}, size_t{4}}) {
        const size_t size = table.taps.size() * channels;
        Bytes ours0(size + 1), ours1(size + 1), theirs0(size + 1), theirs1(size + 1);
        const uint8_t* next = in.data() + width * channels;
        fast.rows[channels](in.data(), next, table, ours0.data(), ours1.data());
        portable.rows[channels](in.data(), next, table, theirs0.data(), theirs1.data());
        EXPECT_TRUE(std::equal(ours0.begin(), ours0.end() - 1, theirs0.begin()));
        EXPECT_TRUE(std::equal(ours1.begin(), ours1.end() - 1, theirs1.begin()));
    }
    const uint8_t* rows[height];
    for (size_t y = 0; y < height; ++y) rows[y] = in.data() + y * width * 4;
    const int32_t weights[] = {1 << 20, 3 << 19, 777, 1 << 19, 99999, 0};
    for (uint32_t count = 0; count <= height; ++count)
        for (const size_t size : {size_t{1}, size_t{31}, size_t{32}, size_t{100}, width * 4}) {
            Bytes ours(size), theirs(size);
            int32_t used[6] = {};
            std::copy_n(weights, count, used);
            fast.columns(rows, count, used, ours.data(), size);
            portable.columns(rows, count, used, theirs.data(), size);
            EXPECT_EQ(ours, theirs);
        }
}

TEST(ImageResize, large_memory_is_not_kept) {
    const Bytes file = png_grey(9000, 8000, Bytes(9000 * 8000, 50));
    const ImageOptions options{.mode = Mode::l8, .resize = Resize::exact, .width = 9, .height = 8};
    const auto decoder = image_decoder(options, 128 << 20);
    DecodeScratch scratch;
    const ArrayType type = decoder->measure(file, 0).type;
    Bytes out(type.bytes());
    decoder->decode(file, 0, type, out, scratch);
    EXPECT_EQ(out, Bytes(72, 50));
    EXPECT_EQ(scratch.image->stored.size(), 0);
    const Bytes small = png_grey(90, 80, Bytes(90 * 80, 50));
    decoder->decode(small, 0, type, out, scratch);
    EXPECT_GE(scratch.image->stored.size(), 90 * 80);
}

}  // namespace
}  // namespace shf::test
