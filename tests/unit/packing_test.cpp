// Documents in rows of one length, filled best-fit.
#include "batch/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shf::test {
namespace {

// Documents number 0, 1, ... of so many elements each.
std::vector<DocumentPart> documents(const std::vector<uint64_t>& counts) {
    std::vector<DocumentPart> all;
    for (const uint64_t count : counts) all.push_back({nullptr, all.size(), 0, count});
    return all;
}

// "0:0+4 2:4+1": four elements of document 0 from its start, and one of document 2.
std::vector<std::string> texts(const std::vector<std::vector<DocumentPart>>& rows) {
    std::vector<std::string> all;
    for (const auto& row : rows) {
        std::string text;
        for (const DocumentPart& part : row)
            text += (text.empty() ? "" : " ") + std::to_string(part.row) + ':' +
                    std::to_string(part.begin) + '+' + std::to_string(part.count);
        all.push_back(text);
    }
    return all;
}

using Texts = std::vector<std::string>;

TEST(Packing, best_fit_decreasing) {
    // The longest first, each to the row with the least room: 6 | 5 3 | 3 3 2.
    EXPECT_EQ(texts(fit_documents(documents({3, 6, 3, 2, 5, 3}), 8)),
              (Texts{"1:0+6 3:0+2", "0:0+3 4:0+5", "2:0+3 5:0+3"}));
    EXPECT_EQ(texts(fit_documents(documents({8, 8}), 8)), (Texts{"0:0+8", "1:0+8"}));
    EXPECT_TRUE(fit_documents({}, 8).empty());
}

TEST(Packing, only_what_is_longer_than_a_row_is_cut) {
    EXPECT_EQ(texts(fit_documents(documents({2, 18, 5}), 8)),
              (Texts{"1:0+8", "1:8+8", "1:16+2", "0:0+2 2:0+5"}));
}

// A saved stream resumes after any of the rows: what the others have of the documents must give
// the same rows again.
TEST(Packing, rows_do_not_depend_on_those_before_them) {
    std::mt19937_64 random(1);
    for (int repeat = 0; repeat < 200; ++repeat) {
        constexpr uint64_t width = 16;
        std::vector<uint64_t> counts(1 + random() % 60);
        for (uint64_t& count : counts)
            count = random() % 8 == 0 ? 1 + random() % 60 : 1 + random() % width;
        std::vector<DocumentPart> left = documents(counts);
        std::vector<std::vector<DocumentPart>> rows = fit_documents(left, width);
        uint64_t all = 0;
        for (const auto& row : rows) {
            uint64_t filled = 0;
            for (const DocumentPart& part : row) filled += part.count;
            EXPECT_LE(filled, width);
            all += filled;
        }
        uint64_t wanted = 0;
        for (const uint64_t count : counts) wanted += count;
        ASSERT_EQ(all, wanted);
        while (!rows.empty()) {
            for (const DocumentPart& part : rows.front()) {
                const auto document =
                    std::find_if(left.begin(), left.end(),
                                 [&](const DocumentPart& other) { return other.row == part.row; });
                ASSERT_EQ(document->begin, part.begin);  // none of it comes out of its order
                document->begin += part.count;
                document->count -= part.count;
                if (document->count == 0) left.erase(document);
            }
            rows.erase(rows.begin());
            ASSERT_EQ(texts(fit_documents(left, width)), texts(rows));
        }
        EXPECT_TRUE(left.empty());
    }
}

}  // namespace
}  // namespace shf::test
