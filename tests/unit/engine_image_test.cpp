// Images in batches: what is damaged is found by the thread that decodes it, when the rows around
// it are long under way.
#include "batch_client.h"
#include "image_files.h"

#include <algorithm>

namespace shf::test {
namespace {

// Sample `i` has a grey picture of `width` x `height` pixels, all of them i % 251, and its number.
// In a damaged one the last checksum does not fit: its header is sound.
std::string sample(size_t i, int width, int height, bool damaged = false) {
    const Bytes pixels(static_cast<size_t>(width * height), static_cast<uint8_t>(i % 251));
    Bytes png = png_grey(width, height, pixels);
    // Behind the data stand its CRC and the 12 bytes of IEND.
    if (damaged) png[png.size() - 13] ^= 1;
    const std::string key = numbered("k", i);
    return member(key + ".cls", std::to_string(i)) +
           member(key + ".png", std::string(png.begin(), png.end()));
}

class EngineImage : public testing::Test {
  protected:
    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(EngineImage, damaged_ones_are_skipped_and_batches_stay_full) {
    std::string bytes;
    std::vector<int64_t> expected;
    const auto is_bad = [](size_t i) {
        return i % 17 == 3 || i == 0 || i == 399 || (i > 200 && i < 240);
    };
    for (size_t i = 0; i < 400; ++i) {
        if (!is_bad(i)) expected.push_back(static_cast<int64_t>(i));
        bytes += sample(i, 40, 30, is_bad(i));
    }
    directory.write("a.tar", bytes + end_marker());
    for (const char* threads : {"1", "2", "8"})
        for (const char* size : {"1", "16", "100"}) {
            BatchClient client(directory / "a.tar", {{"batch", size},
                                                     {"on_error", "skip_sample"},
                                                     {"decode", "png:image/l8, cls:int"},
                                                     {"decode_threads", threads}});
            std::vector<int64_t> numbers;
            std::vector<size_t> sizes;
            while (const BatchHandle batch = client.next_batch()) {
                sizes.push_back(shf_batch_row_count(batch.get()));
                const shf_array png = column(batch, "png"), cls = column(batch, "cls");
                ASSERT_EQ(png.ndim, 3);
                EXPECT_EQ(png.shape[0], static_cast<int64_t>(sizes.back()));
                for (size_t row = 0; row < sizes.back(); ++row) {
                    const int64_t i = row_of<int64_t>(cls, row)[0];
                    EXPECT_EQ(row_of<uint8_t>(png, row),
                              Bytes(1200, static_cast<uint8_t>(i % 251)));
                    shf_bytes key;
                    EXPECT_EQ(shf_batch_key(batch.get(), row, &key), SHF_OK);
                    EXPECT_EQ(test::text_of(key), numbered("k", static_cast<size_t>(i)));
                    numbers.push_back(i);
                }
            }
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(numbers, expected) << threads << " " << size;
            ASSERT_FALSE(sizes.empty());
            sizes.pop_back();
            for (const size_t rows : sizes) EXPECT_EQ(std::to_string(rows), size);
            EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SAMPLES), 400 - expected.size());
        }
}

TEST_F(EngineImage, first_damaged_one_is_the_error) {
    std::string bytes;
    for (size_t i = 0; i < 200; ++i) bytes += sample(i, 64, 64, i == 77 || i == 78 || i == 150);
    // And a worse fault after it, which the thread that takes samples meets first.
    directory.write("a.tar", bytes + member("k200.cls", "x") + end_marker());
    for (const char* threads : {"1", "2", "8"}) {
        BatchClient client(directory / "a.tar", {{"batch", "50"}, {"decode_threads", threads}});
        EXPECT_TRUE(client.next_batch()) << client.message();
        EXPECT_FALSE(client.next_batch());
        EXPECT_EQ(client.code, SHF_E_FORMAT);
        EXPECT_NE(client.message().find("k77.png"), std::string::npos) << client.message();
    }
}

// What is in a batch, and which rows are of another shape, does not depend on where batches begin,
// which follows from when a damaged image was found.
TEST_F(EngineImage, shape_of_the_first_row_holds_for_all) {
    std::string bytes;
    std::vector<int64_t> expected;
    for (size_t i = 0; i < 200; ++i) {
        const bool damaged = i == 0 || i == 3 || i == 50, other = i % 8 == 0 && i > 0;
        bytes += sample(i, 20, other ? 30 : 20, damaged);
        if (!damaged && !other) expected.push_back(static_cast<int64_t>(i));
    }
    directory.write("a.tar", bytes + end_marker());
    for (int run = 0; run < 4; ++run)
        for (const char* threads : {"1", "8"}) {
            BatchClient client(directory / "a.tar", {{"batch", "8"},
                                                     {"decode", "png:image/l8, cls:int"},
                                                     {"on_error", "skip_sample"},
                                                     {"decode_threads", threads}});
            std::vector<int64_t> numbers;
            while (const BatchHandle batch = client.next_batch())
                for (size_t row = 0; row < shf_batch_row_count(batch.get()); ++row)
                    numbers.push_back(row_of<int64_t>(column(batch, "cls"), row)[0]);
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(numbers, expected);
        }
}

TEST_F(EngineImage, of_unequal_size) {
    std::string bytes;
    for (size_t i = 0; i < 60; ++i)
        bytes += sample(i, static_cast<int>(i % 5) + 1, static_cast<int>(i % 3) + 1, i % 7 == 6);
    directory.write("a.tar", bytes + end_marker());
    for (const char* ragged : {"offsets", "pad"}) {
        BatchClient client(directory / "a.tar", {{"batch", "8"},
                                                 {"on_error", "skip_sample"},
                                                 {"decode", "png:image/l8, cls:int"},
                                                 {"ragged", ragged}});
        size_t rows = 0;
        while (const BatchHandle batch = client.next_batch()) {
            const shf_array png = column(batch, "png"), cls = column(batch, "cls");
            ASSERT_TRUE(png.shapes);
            ASSERT_EQ(png.row_ndim, 2);
            for (size_t row = 0; row < shf_batch_row_count(batch.get()); ++row, ++rows) {
                const auto i = row_of<int64_t>(cls, row)[0];
                const int64_t width = i % 5 + 1, height = i % 3 + 1;
                EXPECT_EQ(png.shapes[2 * row], height);
                EXPECT_EQ(png.shapes[2 * row + 1], width);
                const auto pixels = row_of<uint8_t>(png, row);
                const auto sum = std::count(pixels.begin(), pixels.end(), static_cast<uint8_t>(i));
                // Black looks like what a row was filled up with.
                if (i > 0) {
                    EXPECT_EQ(sum, width * height) << i;
                }
                EXPECT_EQ(pixels.size(),
                          static_cast<size_t>(png.offsets ? width * height
                                                          : png.shape[1] * png.shape[2]));
            }
        }
        EXPECT_EQ(client.code, SHF_END) << client.message();
        EXPECT_EQ(rows, 52U) << ragged;
    }
}

TEST_F(EngineImage, random_crops_are_the_same_in_every_run) {
    std::string bytes;
    for (size_t i = 0; i < 50; ++i) {
        const Bytes png = png_rgb(30, 20, noise(1800, static_cast<uint32_t>(i)));
        const std::string key = numbered("k", i), file(png.begin(), png.end());
        bytes += member(key + ".png", file) + member(key + ".seg.png", file);
    }
    directory.write("a.tar", bytes + end_marker());
    const auto pixels_of = [&](const char* threads, const char* seed) {
        BatchClient client(directory / "a.tar",
                           {{"batch", "50"},
                            {"seed", seed},
                            {"decode_threads", threads},
                            {"decode",
                             "png:image/rgb8/crop=random:9x7/flip=random, "
                             "seg.png:image/rgb8/crop=random:9x7/flip=random"}});
        const BatchHandle batch = client.next_batch();
        EXPECT_TRUE(batch) << client.message();
        const shf_array png = column(batch, "png"), seg = column(batch, "seg.png");
        const Bytes all(static_cast<uint8_t*>(png.data),
                        static_cast<uint8_t*>(png.data) + png.size);
        EXPECT_EQ(all.size(), 50U * 9 * 7 * 3);
        // An image and its mask are cropped and turned alike.
        EXPECT_TRUE(std::equal(all.begin(), all.end(), static_cast<uint8_t*>(seg.data)));
        return all;
    };
    const Bytes once = pixels_of("1", "4");
    EXPECT_EQ(pixels_of("8", "4"), once);
    EXPECT_NE(pixels_of("1", "5"), once);
}

}  // namespace
}  // namespace shf::test
