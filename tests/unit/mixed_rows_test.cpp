// MixUp and CutMix: the columns that say which rows of a batch are mixed, and how.
#include "batch/mixed_rows.h"

#include "batch_client.h"
#include "image_files.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace shf::test {
namespace {

constexpr double pi = 3.14159265358979323846;

// The largest distance between what was drawn and the distribution, times the root of the number of
// draws: above 1.95 in one of a thousand cases (Kolmogorov and Smirnov).
template <typename Distribution>
double distance(double alpha, const Distribution& below) {
    constexpr int draws = 10000;
    Random random(Random::row_mixing, {static_cast<uint64_t>(alpha * 1000)});
    std::vector<double> drawn;
    for (int i = 0; i < draws; ++i) drawn.push_back(draw_beta(alpha, random));
    std::sort(drawn.begin(), drawn.end());
    double most = 0;
    for (int i = 0; i < draws; ++i) {
        const double p = below(drawn[static_cast<size_t>(i)]);
        most = std::max(
            {most, p - static_cast<double>(i) / draws, static_cast<double>(i + 1) / draws - p});
    }
    return most * std::sqrt(draws);
}

TEST(DrawBeta, has_the_distribution) {
    EXPECT_LT(distance(1, [](double x) { return x; }), 1.95);
    EXPECT_LT(distance(0.5, [](double x) { return 2 / pi * std::asin(std::sqrt(x)); }), 1.95);
    EXPECT_LT(distance(2, [](double x) { return x * x * (3 - 2 * x); }), 1.95);
    // What would be told apart.
    EXPECT_GT(distance(2, [](double x) { return x; }), 1.95);
}

// Mean 1/2 and variance 1 / (8 alpha + 4), also at the ends of what may be given.
TEST(DrawBeta, has_the_moments_of_every_alpha) {
    for (const double alpha : {0.001, 0.02, 0.2, 0.7, 5.0, 1000.0}) {
        Random random(Random::row_mixing, {7});
        constexpr int draws = 40000;
        double sum = 0, squares = 0;
        for (int i = 0; i < draws; ++i) {
            const double x = draw_beta(alpha, random);
            ASSERT_TRUE(x >= 0 && x <= 1) << alpha << " " << x;
            sum += x - 0.5;
            squares += (x - 0.5) * (x - 0.5);
        }
        const double variance = 1 / (8 * alpha + 4);
        EXPECT_NEAR(sum / draws, 0, 4 * std::sqrt(variance / draws)) << alpha;
        EXPECT_NEAR(squares / draws, variance, variance * 0.03) << alpha;
    }
}

class MixedRows : public testing::Test {
  protected:
    MixedRows() {
        std::string bytes;
        for (size_t i = 0; i < count; ++i) {
            const Bytes png = png_rgb(width, height, noise(3 * width * height, uint32_t(i)));
            const std::string key = numbered("k", i);
            bytes += member(key + ".cls", std::to_string(i)) +
                     member(key + ".png", std::string(png.begin(), png.end()));
        }
        directory.write("a.tar", bytes + end_marker());
    }

    struct Row {
        int64_t cls, partner;  // its class, and that of the row that it is mixed with
        float weight;
        std::vector<int64_t> box;
        bool operator==(const Row&) const = default;
    };
    // Of all batches; checks each by itself.
    std::vector<Row> rows_of(const std::string& words, const char* batch, const char* threads,
                             const char* seed = "1") {
        BatchClient client(directory / "a.tar", {{"batch", batch},
                                                 {"decode_threads", threads},
                                                 {"seed", seed},
                                                 {"decode", "png:image" + words + ", cls"}});
        std::vector<Row> rows;
        while (const BatchHandle made = client.next_batch()) {
            const size_t size = shf_batch_row_count(made.get());
            const shf_array cls = column(made, "cls"), index = column(made, "__mix_index__"),
                            weight = column(made, "__mix_weight__");
            EXPECT_EQ(index.dtype, SHF_DTYPE_INT64);
            EXPECT_EQ(weight.dtype, SHF_DTYPE_FLOAT32);
            EXPECT_EQ(weight.ndim, 1);
            size_t at = 0;
            const bool cuts = shf_batch_find(made.get(), "__mix_box__", 11, &at) == SHF_OK;
            size_t place = 0;
            for (size_t row = 0, in_circle = 1; row < size; ++row) {
                const int64_t partner = row_of<int64_t>(index, row)[0];
                rows.push_back({row_of<int64_t>(cls, row)[0],
                                row_of<int64_t>(cls, static_cast<size_t>(partner))[0],
                                row_of<float>(weight, row)[0],
                                {}});
                if (cuts) rows.back().box = row_of<int64_t>(column(made, "__mix_box__"), row);
                // From row 0 on, through every other row, back to row 0.
                place = static_cast<size_t>(row_of<int64_t>(index, place)[0]);
                EXPECT_EQ(place == 0, in_circle++ == size);
            }
        }
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return rows;
    }

    static constexpr size_t count = 150;
    static constexpr int width = 12, height = 10;
    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(MixedRows, are_the_same_in_every_run) {
    for (const std::string words : {"/mixup=0.2", "/cutmix=1", "/mixup=0.2/cutmix=1"}) {
        const std::vector<Row> once = rows_of(words, "32", "1");
        ASSERT_EQ(once.size(), count);
        EXPECT_EQ(rows_of(words, "32", "8"), once) << words;
        EXPECT_NE(rows_of(words, "32", "1", "2"), once) << words;
        // What is drawn for a row does not depend on its batch; the rows that are there do.
        const std::vector<Row> larger = rows_of(words, "50", "3");
        ASSERT_EQ(larger.size(), count);
        size_t same = 0;
        for (size_t i = 0; i < count; ++i) {
            EXPECT_EQ(larger[i].weight, once[i].weight);
            EXPECT_EQ(larger[i].box, once[i].box);
            same += larger[i].partner == once[i].partner ? 1 : 0;
        }
        EXPECT_LT(same, count / 4);
    }
}

TEST_F(MixedRows, of_mixup_have_no_box) {
    for (const Row& row : rows_of("/mixup=1", "32", "2")) EXPECT_TRUE(row.box.empty());
}

TEST_F(MixedRows, of_cutmix_have_the_share_outside_the_box) {
    std::set<std::vector<int64_t>> boxes;
    // A layout with the colours first has its sides elsewhere.
    for (const std::string words : {"/cutmix=1", "/rgb/chw/cutmix=1", "/l8/cutmix=1"}) {
        for (const Row& row : rows_of(words, "32", "2")) {
            ASSERT_EQ(row.box.size(), 4U);
            const auto [top, left, bottom, right] =
                std::array{row.box[0], row.box[1], row.box[2], row.box[3]};
            EXPECT_TRUE(0 <= top && top <= bottom && bottom <= height);
            EXPECT_TRUE(0 <= left && left <= right && right <= width);
            const auto area = static_cast<float>((bottom - top) * (right - left));
            EXPECT_NEAR(row.weight, 1 - area / (width * height), 1e-6);
            boxes.insert(row.box);
        }
    }
    EXPECT_GT(boxes.size(), count / 2);
}

TEST_F(MixedRows, of_both_are_of_one_or_the_other) {
    size_t whole = 0;
    for (const Row& row : rows_of("/mixup=1/cutmix=1", "32", "2")) {
        ASSERT_EQ(row.box.size(), 4U);
        if (row.box == std::vector<int64_t>{0, 0, height, width} && row.weight > 0) {
            ++whole;
            continue;
        }
        const auto area = static_cast<float>((row.box[2] - row.box[0]) * (row.box[3] - row.box[1]));
        EXPECT_NEAR(row.weight, 1 - area / (width * height), 1e-6);
    }
    // Half of them, within five standard deviations.
    EXPECT_NEAR(static_cast<double>(whole), count / 2.0, 5 * std::sqrt(count / 4.0));
}

// Rows after one that failed are copied from batch to batch.
TEST_F(MixedRows, come_after_rows_that_failed) {
    std::string bytes;
    std::vector<int64_t> expected;
    for (size_t i = 0; i < 90; ++i) {
        Bytes png = png_grey(8, 8, Bytes(64, static_cast<uint8_t>(i)));
        if (i % 11 == 4) png[png.size() - 13] ^= 1;  // the last checksum
        if (i % 11 != 4) expected.push_back(static_cast<int64_t>(i));
        const std::string key = numbered("k", i);
        bytes += member(key + ".cls", std::to_string(i)) +
                 member(key + ".png", std::string(png.begin(), png.end()));
    }
    directory.write("b.tar", bytes + end_marker());
    std::vector<std::vector<int64_t>> runs;
    for (const char* threads : {"1", "4"}) {
        BatchClient client(directory / "b.tar", {{"batch", "16"},
                                                 {"on_error", "skip_sample"},
                                                 {"decode", "png:image/l8/cutmix=1, cls"},
                                                 {"decode_threads", threads}});
        std::vector<int64_t> numbers;
        std::vector<int64_t>& run = runs.emplace_back();
        while (const BatchHandle batch = client.next_batch()) {
            std::set<int64_t> partners;
            for (size_t row = 0; row < shf_batch_row_count(batch.get()); ++row) {
                numbers.push_back(row_of<int64_t>(column(batch, "cls"), row)[0]);
                run.push_back(row_of<int64_t>(column(batch, "__mix_index__"), row)[0]);
                partners.insert(run.back());
                for (const int64_t side : row_of<int64_t>(column(batch, "__mix_box__"), row))
                    run.push_back(side);
            }
            EXPECT_EQ(partners.size(), shf_batch_row_count(batch.get()));
            EXPECT_LT(*partners.rbegin(), static_cast<int64_t>(partners.size()));
        }
        EXPECT_EQ(client.code, SHF_END) << client.message();
        EXPECT_EQ(numbers, expected);
    }
    EXPECT_EQ(runs[0], runs[1]);
}

TEST_F(MixedRows, have_images_of_one_size) {
    std::string bytes;
    for (size_t i = 0; i < 20; ++i) {
        const int side = i == 13 ? 9 : 8;
        const Bytes png = png_grey(side, 8, Bytes(static_cast<size_t>(8 * side), 1));
        bytes += member(numbered("k", i) + ".png", std::string(png.begin(), png.end()));
    }
    directory.write("b.tar", bytes + end_marker());
    for (const char* ragged : {"error", "pad", "offsets"}) {
        BatchClient client(
            directory / "b.tar",
            {{"batch", "8"}, {"ragged", ragged}, {"decode", "png:image/l8/cutmix=1"}});
        const BatchHandle first = client.next_batch();
        ASSERT_TRUE(first) << client.message();
        int64_t largest = 0;
        for (size_t row = 0; row < 8; ++row) {
            const std::vector<int64_t> box = row_of<int64_t>(column(first, "__mix_box__"), row);
            EXPECT_TRUE(box[2] <= 8 && box[3] <= 8) << ragged;
            largest = std::max(largest, (box[2] - box[0]) * (box[3] - box[1]));
        }
        EXPECT_GT(largest, 4) << ragged;
        EXPECT_FALSE(client.next_batch());
        EXPECT_EQ(client.code, SHF_E_FORMAT);
        EXPECT_NE(client.message().find("k13.png"), std::string::npos) << client.message();
        EXPECT_NE(client.message().find("one size"), std::string::npos) << client.message();
    }
}

}  // namespace
}  // namespace shf::test
