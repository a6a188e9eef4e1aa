// Truncated and damaged inputs: rules D2 and D5 of docs/rules.md.
#include "filter_encoders.h"
#include "filter_outcome.h"
#include "sanitizers.h"

namespace shf::test {
namespace {

// Under sanitizers every third length or bit: the others are for builds that are quicker.
constexpr size_t stride = CASE_STRIDE;

struct Case {
    std::string name;
    std::string input;
    std::string data;
};

void PrintTo(const Case& c, std::ostream* to) {
    *to << c.name;
}

// Every shape of frame that an encoder makes, small enough to try each byte and bit.
std::vector<Case> small_cases() {
    const std::string t = text(700), n = noise(90), runs(4000, 'r');
    uint8_t extra[] = "extra field", name[] = "name.tar", comment[] = "comment";
    gz_header header{};
    header.extra = extra;
    header.extra_len = sizeof(extra);
    header.name = name;
    header.comment = comment;
    header.hcrc = 1;
    std::vector<Case> cases;
    for (const char* codec : codecs) {
        cases.push_back({std::string(codec) + "_empty", compress(codec, ""), ""});
        cases.push_back({std::string(codec) + "_text", compress(codec, t), t});
        cases.push_back({std::string(codec) + "_noise", compress(codec, n), n});
        cases.push_back({std::string(codec) + "_runs", compress(codec, runs), runs});
    }
    cases.push_back({"gzip_stored", gzip(n, 0), n});
    cases.push_back({"gzip_full_header", gzip(n, 9, &header), n});
    cases.push_back({"xz_sha256", xz(n, LZMA_CHECK_SHA256), n});
    cases.push_back({"xz_crc32", xz(t, LZMA_CHECK_CRC32), t});
    cases.push_back(
        {"zstd_no_content_size", zstd(t, {.window_log = 10, .content_size = false}), t});
    cases.push_back({"zstd_after_skippable", skippable(n) + zstd(n), n});
    cases.push_back({"lz4_all_checks", lz4(n, {.linked = false, .block_checks = true}), n});
    cases.push_back({"lz4_content_size", lz4(t, {.content_size = true}), t});
    return cases;
}

class SmallStream : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Filter, SmallStream, testing::ValuesIn(small_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SmallStream, every_prefix_is_truncated) {
    const auto& [name, input, data] = GetParam();
    const size_t skip = name == "zstd_after_skippable" ? 98 : 0;
    ASSERT_EQ(filter(input).bytes, data);
    for (size_t size = 1; size < input.size(); size += stride) {
        if (size == skip) continue;  // a whole frame
        const Outcome outcome = filter(input.substr(0, size));
        EXPECT_EQ(outcome.code, SHF_E_TRUNCATED) << size << ": " << outcome.message;
        EXPECT_TRUE(data.starts_with(outcome.bytes)) << size;
        EXPECT_EQ(outcome.offset, outcome.bytes.size());
        for (const size_t span : {1U, 100U})
            EXPECT_EQ(outcome, filter(input.substr(0, size), {}, 1, span)) << size;
        // Also behind another frame, where a part of a magic must not pass for junk.
        const Outcome second = filter(input + input.substr(0, size), {}, size % 2 == 0 ? 1 : 511);
        EXPECT_EQ(second.code, SHF_E_TRUNCATED) << size << ": " << second.message;
        EXPECT_TRUE((data + data).starts_with(second.bytes)) << size;
        EXPECT_GE(second.bytes.size(), data.size());
    }
}

TEST_P(SmallStream, flipped_bit_never_gives_wrong_bytes) {
    const auto& [name, input, data] = GetParam();
    for (size_t bit = 0; bit < input.size() * 8; bit += stride) {
        std::string bad = input;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        const Outcome outcome = filter(bad);
        // Without the magic it is no compressed data; the tar reader refuses it then.
        const std::string& expected = outcome.codec.empty() ? bad : data;
        if (outcome.code == SHF_OK) {
            EXPECT_TRUE(outcome.bytes == expected) << "bit " << bit;
        } else {
            EXPECT_TRUE(outcome.code == SHF_E_FORMAT || outcome.code == SHF_E_INTEGRITY ||
                        outcome.code == SHF_E_TRUNCATED || outcome.code == SHF_E_UNSUPPORTED ||
                        outcome.code == SHF_E_LIMIT)
                << outcome.message;
        }
        for (const size_t span : {17U, 300U})
            EXPECT_EQ(outcome, filter(bad, {}, span % 5, span)) << "bit " << bit;
    }
}

class LargeStream : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Filter, LargeStream, testing::ValuesIn(codecs),
                         [](const auto& info) { return std::string(info.param); });

// Several blocks and several input blocks: what is delivered before a fault, and its place, are the
// same for all cuts.
TEST_P(LargeStream, fault_does_not_depend_on_cuts) {
    const std::string data = text(150000) + noise(150000) + std::string(90000, 'r') + text(150000);
    const std::string input = compress(GetParam(), data);
    std::minstd_rand random(7);
    for (int i = 0; i < 12; i += CASE_STRIDE) {
        const size_t at = random() % input.size();
        std::string bad = input;
        bad[at] = static_cast<char>(bad[at] ^ (1 << (random() % 8)));
        const Outcome flipped = always(bad);
        EXPECT_NE(flipped.code, SHF_OK) << at;
        EXPECT_EQ(flipped.offset, flipped.bytes.size());
        const Outcome cut = always(input.substr(0, at));
        EXPECT_EQ(cut.code, SHF_E_TRUNCATED) << at;
        EXPECT_TRUE(data.starts_with(cut.bytes));
        EXPECT_EQ(cut.offset, cut.bytes.size());
    }
}

// `position` counts from the end when it is negative.
Outcome with_flip(std::string input, int position) {
    char& c = position < 0 ? input[input.size() - static_cast<size_t>(-position)]
                           : input[static_cast<size_t>(position)];
    c = static_cast<char>(c ^ 1);
    return always(input);
}

TEST(FilterIntegrity, wrong_checks_are_found) {
    const std::string data = text(100000);
    const std::pair<std::string, std::vector<int>> cases[] = {
        {gzip(data), {-8, -5, -4, -1}},  // CRC-32, ISIZE
        {bzip2(data), {-2, -3}},         // CRC of the stream
        {zstd(data), {-1, -4}},          // low half of XXH64
        {lz4(data), {-1, -4}},           // XXH32 of the content
        {lz4(data, {.block_checks = true, .content_check = false}), {-5, -8}},  // of the block
    };
    for (const auto& [input, positions] : cases)
        for (const int position : positions) {
            const Outcome outcome = with_flip(input, position);
            EXPECT_EQ(outcome.code, SHF_E_INTEGRITY) << position << ' ' << outcome.message;
            EXPECT_TRUE(data.starts_with(outcome.bytes));
        }
    // Stream flags, Index size and CRC, then padding and records, then the check of the block.
    for (int position = -1; position > -30; --position)
        EXPECT_EQ(with_flip(xz(text(5000)), position).code, SHF_E_INTEGRITY) << position;
    EXPECT_EQ(with_flip(bzip2(data), 10).code, SHF_E_INTEGRITY);  // CRC of the first block
    EXPECT_EQ(with_flip(lz4(data), 6).code, SHF_E_INTEGRITY);     // header checksum
}

TEST(FilterIntegrity, damaged_headers_are_format) {
    EXPECT_EQ(with_flip(xz("data"), 7).code, SHF_E_FORMAT);  // stream flags against their CRC
    EXPECT_EQ(with_flip(bzip2("data") + bzip2("x"), 0).code, SHF_OK);  // no bzip2: plain
    std::string deflate = gzip("data");
    deflate[10] = 0x07;  // last block, type 3
    EXPECT_EQ(always(deflate).code, SHF_E_FORMAT);
    std::string block = zstd(text(1000));
    block[6 + 1] = static_cast<char>(block[6 + 1] | 6);  // block type 3
    EXPECT_EQ(always(block).code, SHF_E_FORMAT);
}

TEST(FilterGzip, header_fields_are_parsed) {
    const auto member = [](bool hcrc, bool extra, bool name, bool comment) {
        uint8_t bytes[] = "0123456789";
        std::string extra_field = noise(60000);
        gz_header header{};
        header.hcrc = hcrc ? 1 : 0;
        if (extra) header.extra = bytes_of(extra_field);
        header.extra_len = extra ? 60000 : 0;
        if (name) header.name = bytes;
        if (comment) header.comment = bytes;
        return gzip("data", 6, &header);
    };
    for (unsigned bits = 0; bits < 16; ++bits) {
        const std::string input =
            member((bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0);
        EXPECT_EQ(always(input + input).bytes, "datadata") << bits;
        EXPECT_EQ(with_flip(input, 4).code, (bits & 1) != 0 ? SHF_E_INTEGRITY : SHF_OK);  // MTIME
        for (const unsigned reserved : {0x20U, 0x40U, 0x80U}) {
            std::string bad = input;
            bad[3] = static_cast<char>(static_cast<unsigned char>(bad[3]) | reserved);
            EXPECT_EQ(always(bad).code, SHF_E_FORMAT);
            const Outcome second = always(input + bad);
            EXPECT_EQ(second.code, SHF_E_FORMAT);
            EXPECT_EQ(second.offset, 4U);
        }
    }
}

}  // namespace
}  // namespace shf::test
