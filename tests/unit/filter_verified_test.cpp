// What is verified before it is delivered, and what is not: rule D5 of docs/rules.md.
#include "filter_encoders.h"
#include "filter_outcome.h"

namespace shf::test {
namespace {

constexpr size_t mebi = 1 << 20;

// `position` counts from the end when it is negative.
std::string flipped(std::string input, ptrdiff_t position) {
    const size_t at = position < 0 ? input.size() - static_cast<size_t>(-position)
                                   : static_cast<size_t>(position);
    input[at] = static_cast<char>(input[at] ^ 1);
    return input;
}

// In the check over all of the data: CRC-32, CRC of the stream's last block, CRC-64, XXH64, XXH32.
ptrdiff_t check_position(std::string_view codec, std::string_view input) {
    if (codec == "gzip") return -8;
    if (codec == "bzip2") return 10;
    if (codec != "xz") return -1;
    // Before the index, which has one record: 24 bytes with indicator, padding and CRC at most,
    // and the footer of 12. The size of the index is in the footer.
    const auto byte = [&](size_t back) {
        return static_cast<unsigned char>(input[input.size() - back]);
    };
    const size_t index = (size_t{byte(8)} + 1) * 4;
    return -static_cast<ptrdiff_t>(12 + index + 1);
}

// The one outcome of some ways to cut input and output: of large data not all of always().
Outcome with_some_cuts(std::string_view input) {
    const Outcome first = filter(input);
    EXPECT_EQ(first, filter(input, {}, 65536, 70001));
    EXPECT_EQ(first, filter(input, {}, 513, 1 << 20));
    return first;
}

TEST(FilterVerified, small_frames_are_delivered_whole_or_not_at_all) {
    const std::string data = text(60000);
    for (const std::string_view codec : codecs) {
        const std::string good = compress(codec, data);
        const std::string bad = flipped(good, check_position(codec, good));
        const Outcome alone = always(bad);
        EXPECT_EQ(alone.code, SHF_E_INTEGRITY) << codec << ' ' << alone.message;
        EXPECT_EQ(alone.bytes.size(), 0U) << codec;
        const Outcome second = always(good + bad + good);
        EXPECT_EQ(second.code, SHF_E_INTEGRITY) << codec;
        EXPECT_EQ(second.bytes, data) << codec;
        EXPECT_EQ(second.offset, data.size()) << codec;
        EXPECT_EQ(second.verified, data.size()) << codec;
        EXPECT_EQ(always(good + good).verified, 2 * data.size()) << codec;
    }
}

TEST(FilterVerified, blocks_before_a_damaged_one_are_delivered) {
    const std::string data = noise(450000);
    struct Case {
        const char* name;
        std::string input;
        size_t block;  // bytes in each, 0: what the codec likes
    };
    const Case cases[] = {
        {"bzip2", bzip2(data), 0},
        {"xz", xz_in_blocks(data, 50000), 50000},
        {"lz4", lz4(data, {.linked = false, .block_checks = true, .content_check = false}), 65536},
        {"lz4 with both checks", lz4(data, {.linked = false, .block_checks = true}), 65536},
        {"lz4 with a size", lz4(data, {.block_checks = true, .content_size = true}), 65536},
    };
    for (const auto& [name, input, block] : cases) {
        const Outcome whole = always(input);
        EXPECT_EQ(whole.bytes, data) << name;
        EXPECT_EQ(whole.verified, data.size()) << name;
        const Outcome outcome = always(flipped(input, static_cast<ptrdiff_t>(input.size() / 2)));
        EXPECT_EQ(outcome.code, SHF_E_INTEGRITY) << name << ' ' << outcome.message;
        EXPECT_TRUE(data.starts_with(outcome.bytes)) << name;
        EXPECT_EQ(outcome.verified, outcome.bytes.size()) << name;
        if (block > 0) {
            EXPECT_EQ(outcome.bytes.size(), data.size() / 2 / block * block) << name;
        } else {
            // Blocks of 100,000 bytes less some.
            EXPECT_GT(outcome.bytes.size(), 150000U) << name;
            EXPECT_LT(outcome.bytes.size(), 225000U) << name;
        }
    }
}

// Larger ones are delivered before their check is reached, and are not verified then.
TEST(FilterVerified, large_frames_are_delivered_before_their_check) {
    const std::string data = noise(9 * mebi), start = text(5000);
    struct Case {
        const char* name;
        std::string input;
        ptrdiff_t check;
        size_t least;  // bytes that are delivered
    };
    const std::string blocks = xz_in_blocks(data, 0);
    const Case cases[] = {
        {"gzip", gzip(start) + gzip(data, 0), -8, start.size() + data.size()},
        {"zstd", zstd(start) + zstd(data), -1, start.size() + data.size()},
        {"zstd without size", zstd(start) + zstd(data, {.content_size = false}), -1,
         start.size() + data.size()},
        {"lz4", lz4(start) + lz4(data), -1, start.size() + data.size()},
        {"lz4 with size", lz4(start) + lz4(data, {.content_size = true}), -1,
         start.size() + data.size()},
        // What came with the fault is dropped, so the last 64 KiB at most.
        {"xz", xz(start) + blocks, check_position("xz", blocks),
         start.size() + data.size() - 65536},
    };
    for (const auto& [name, input, check, least] : cases) {
        EXPECT_EQ(filter(input).verified, start.size() + data.size()) << name;
        const Outcome outcome = with_some_cuts(flipped(input, check));
        EXPECT_EQ(outcome.code, SHF_E_INTEGRITY) << name << ' ' << outcome.message;
        EXPECT_TRUE((start + data).starts_with(outcome.bytes)) << name;
        EXPECT_GE(outcome.bytes.size(), least) << name;
        EXPECT_EQ(outcome.verified, start.size()) << name;
        EXPECT_EQ(outcome.offset, outcome.bytes.size()) << name;
        // Damaged at a place in the last MiB: the same for all cuts.
        const Outcome early = with_some_cuts(flipped(input, -static_cast<ptrdiff_t>(mebi)));
        EXPECT_NE(early.code, SHF_OK) << name;
        EXPECT_EQ(early.verified, start.size()) << name;
        EXPECT_GT(early.bytes.size(), 8 * mebi - mebi) << name;
    }
}

// 8 MiB are held back; a frame that proves to be larger is delivered as it comes.
TEST(FilterVerified, eight_mebibytes_are_held_back) {
    for (const size_t size : {8 * mebi, 8 * mebi + (128 << 10)}) {
        const std::string data = noise(size);
        for (const std::string& input :
             {gzip(data, 0), zstd(data, {.content_size = false}), zstd(data), lz4(data)}) {
            const Outcome outcome = filter(flipped(input, input[0] == '\x1f' ? -8 : -1));
            EXPECT_EQ(outcome.code, SHF_E_INTEGRITY);
            EXPECT_EQ(outcome.bytes.size(), size > 8 * mebi ? size : 0);
        }
    }
}

// What has no check is not held back.
TEST(FilterVerified, frames_without_check_do_not_wait) {
    const std::string data = noise(1 * mebi);
    const std::string inputs[] = {zstd(data, {.checksum = false}),
                                  lz4(data, {.content_check = false}), xz(data, LZMA_CHECK_NONE)};
    for (const std::string& input : inputs) {
        const Outcome whole = always(input);
        EXPECT_EQ(whole.bytes, data);
        EXPECT_EQ(whole.verified, data.size());
        const Outcome cut = always(input.substr(0, input.size() / 2));
        EXPECT_EQ(cut.code, SHF_E_TRUNCATED);
        EXPECT_GT(cut.bytes.size(), data.size() / 4) << cut.codec;
        EXPECT_TRUE(data.starts_with(cut.bytes));
    }
}

// Bytes that look like calls of x86, which the filter converts.
std::string calls(size_t size) {
    std::string data = noise(size);
    for (size_t i = 0; i + 5 < size; i += 7) {
        data[i] = '\xe8';
        data[i + 4] = i % 2 == 0 ? '\0' : '\xff';
    }
    return data;
}

// liblzma gives bytes that its branch filter has not converted together with a fault.
void flip_bits_behind_a_branch_filter(size_t stride) {
    const std::string data = calls(4000);
    size_t tried = 0;
    for (const std::string& input : {xz_in_blocks(data, 0, true), xz_in_blocks(data, 900, true)}) {
        ASSERT_EQ(filter(input).bytes, data);
        for (size_t bit = 0; bit < input.size() * 8; bit += stride, ++tried) {
            std::string bad = input;
            bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
            const Outcome outcome = filter(bad, {}, 0, 777);
            if (outcome.codec.empty()) continue;  // no xz any more
            EXPECT_NE(outcome.code, SHF_OK) << bit;
            ASSERT_TRUE(data.starts_with(outcome.bytes)) << bit;
        }
    }
    std::printf("%zu damaged files\n", tried);
}

TEST(FilterVerified, output_that_comes_with_a_fault_is_dropped) {
    flip_bits_behind_a_branch_filter(61);
}
// The same where nothing is held back: the fault comes where a chunk of LZMA2 begins, with whatever
// the branch filter still had.
TEST(FilterVerified, output_that_comes_with_a_fault_is_dropped_without_a_check) {
    const std::string data = calls(300'000);
    const std::string whole = xz_in_blocks(data, 0, true, LZMA_CHECK_NONE);
    ASSERT_EQ(filter(whole).bytes, data);
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(whole[at]); };
    size_t at = 12 + (byte(12) + size_t{1}) * 4, tried = 0;  // behind the header of the block
    for (; byte(at) != 0; ++tried) {
        std::string bad = whole;
        bad[at] = 3;  // no control byte of LZMA2
        const Outcome outcome = filter(bad, {}, 0, 777);
        EXPECT_NE(outcome.code, SHF_OK) << at;
        EXPECT_TRUE(data.starts_with(outcome.bytes)) << at << ": " << outcome.bytes.size();
        const size_t size = byte(at) < 0x80 ? 1 : 3;  // where the size in the file stands
        const size_t head = byte(at) < 0x80 ? 3 : byte(at) >= 0xc0 ? 6 : 5;
        at += head + byte(at + size) * 256U + byte(at + size + 1) + 1;
    }
    EXPECT_GT(tried, 2U);
}
TEST(FilterVerified, every_flip_behind_a_branch_filter) {
    flip_bits_behind_a_branch_filter(1);
}

}  // namespace
}  // namespace shf::test
