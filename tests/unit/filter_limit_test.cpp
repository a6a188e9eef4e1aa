// Limits and what is not supported: rules D1 and D8 of docs/rules.md.
#include "filter_encoders.h"
#include "filter_outcome.h"

#include <zdict.h>

namespace shf::test {
namespace {

constexpr size_t mebi = size_t{1} << 20;

Options with(std::string_view name, std::string_view value) {
    Options options;
    options.set(name, value);
    return options;
}

void expect_limit(const Outcome& outcome, std::string_view option) {
    EXPECT_EQ(outcome.code, SHF_E_LIMIT);
    EXPECT_NE(outcome.message.find(option), std::string::npos) << outcome.message;
}

TEST(FilterRatio, holds_after_64_mib) {
    const std::string bomb(66 * mebi, '\0');
    for (const char* codec : codecs) {
        if (codec == std::string_view("gzip")) continue;
        const std::string input = compress(codec, bomb);
        const Outcome first = filter(input, with("max_ratio", "100"));
        for (const size_t chunk : {0U, 511U})
            for (const size_t span : {size_t{70000}, 80 * mebi}) {
                const Outcome refused = filter(input, with("max_ratio", "100"), chunk, span);
                expect_limit(refused, "max_ratio");
                // A block of bzip2 is delivered whole or not at all.
                if (codec != std::string_view("bzip2")) {
                    EXPECT_EQ(refused.bytes.size(), 65 * mebi) << codec << ' ' << span;
                }
                EXPECT_EQ(refused.offset, refused.bytes.size()) << codec << ' ' << span;
                EXPECT_EQ(refused, first) << codec;
            }
        EXPECT_EQ(filter(input, with("max_ratio", "1000000")).bytes.size(), bomb.size());
        const std::string small = compress(codec, std::string_view(bomb).substr(0, 64 * mebi));
        EXPECT_EQ(filter(small, with("max_ratio", "1")).bytes.size(), 64 * mebi) << codec;
    }
}

TEST(FilterRatio, of_deflate_is_bounded_by_its_format) {
    const std::string runs(130 * mebi, '\0');
    EXPECT_EQ(filter(gzip(runs, 9), with("max_ratio", "1")).bytes.size(), runs.size());
}

TEST(FilterWindow, of_zstd_is_bounded) {
    const std::string data = text(3 * mebi);
    const std::string stream = zstd(data, {.window_log = 20, .content_size = false});
    EXPECT_EQ(always(stream, with("max_window", "1MiB")).bytes, data);
    expect_limit(always(stream, with("max_window", "1048575")), "max_window");
    // A small frame that asks for much, of which libzstd would decode the content in one go.
    const std::string tiny = zstd("data", {.window_log = 27, .content_size = false});
    expect_limit(always(tiny, with("max_window", "127MiB")), "max_window");
    EXPECT_EQ(always(tiny).bytes, "data");
    // A single segment: its window is the content.
    const std::string segment = zstd(data, {.window_log = 22});
    EXPECT_EQ(filter(segment, with("max_window", "3MiB")).bytes, data);
    expect_limit(always(segment, with("max_window", "2MiB")), "max_window");
    // The second frame, too.
    const Outcome second = always(zstd("data") + tiny, with("max_window", "1MiB"));
    expect_limit(second, "max_window");
    EXPECT_EQ(second.offset, 4U);
}

TEST(FilterWindow, of_xz_is_bounded) {
    const std::string stream = xz("data", LZMA_CHECK_CRC64, 3);  // dictionary: 4 MiB
    expect_limit(always(stream, with("max_window", "2MiB")), "max_window");
    EXPECT_EQ(always(stream, with("max_window", "4MiB")).bytes, "data");
}

TEST(FilterUnsupported, zstd_dictionary) {
    // A formatted dictionary with an id; raw content has none.
    std::string samples;
    std::vector<size_t> sizes;
    for (uint32_t i = 0; i < 200; ++i) {
        samples += text(200, i);
        sizes.push_back(200);
    }
    std::string dictionary(20000, '\0');
    const size_t size = ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data(),
                                              sizes.data(), 200);
    ASSERT_FALSE(ZDICT_isError(size));
    dictionary.resize(size);
    const Outcome outcome = always(zstd(text(500), {.dictionary = dictionary}));
    EXPECT_EQ(outcome.code, SHF_E_UNSUPPORTED);
    EXPECT_NE(outcome.message.find("dictionary"), std::string::npos) << outcome.message;
}

TEST(FilterUnsupported, legacy_frames) {
    for (char version = 0x22; version <= 0x27; ++version) {
        const std::string frame = version + std::string("\xb5\x2f\xfd") + noise(100);
        EXPECT_EQ(always(frame).code, SHF_E_UNSUPPORTED);
        const Outcome second = always(zstd("data") + frame);
        EXPECT_EQ(second.code, SHF_E_UNSUPPORTED);
        EXPECT_EQ(second.bytes, "data");
    }
    EXPECT_EQ(always("\x02\x21\x4c\x18" + noise(100)).code, SHF_E_UNSUPPORTED);
    EXPECT_EQ(always(lz4("data") + "\x02\x21\x4c\x18" + noise(100)).offset, 4U);
}

TEST(FilterUnsupported, lz4_dictionary_and_version) {
    std::string dictionary = lz4("data");
    dictionary[4] = static_cast<char>(dictionary[4] | 1);
    EXPECT_EQ(always(dictionary).code, SHF_E_UNSUPPORTED);
    std::string version = lz4("data");
    version[4] = static_cast<char>(version[4] ^ 0xc0);
    EXPECT_EQ(always(version).code, SHF_E_UNSUPPORTED);
    std::string reserved = lz4("data");
    reserved[4] = static_cast<char>(reserved[4] | 2);
    EXPECT_EQ(always(reserved).code, SHF_E_FORMAT);
}

// Puts the CRC-32 of `size` bytes at `start` behind them.
void seal(std::string& input, size_t start, size_t size) {
    const uint32_t crc = lzma_crc32(bytes_of(input) + start, size, 0);
    for (size_t i = 0; i < 4; ++i) input[start + size + i] = static_cast<char>(crc >> (8 * i));
}

TEST(FilterUnsupported, xz_check_and_filter) {
    std::string check = xz(text(300), LZMA_CHECK_CRC64);
    check[7] = 0x05;  // a reserved check of the same size
    seal(check, 6, 2);
    EXPECT_EQ(always(check).code, SHF_E_UNSUPPORTED);

    std::string flags = xz("data");
    flags[6] = 0x01;  // reserved stream flags
    seal(flags, 6, 2);
    EXPECT_EQ(always(flags).code, SHF_E_UNSUPPORTED);

    std::string stage = xz("data");
    const size_t header = (static_cast<size_t>(stage[12]) + 1) * 4;
    const size_t id = stage.find('\x21', 12);
    ASSERT_LT(id, 12 + header);
    stage[id] = 0x22;  // no known filter
    seal(stage, 12, header - 4);
    EXPECT_EQ(always(stage).code, SHF_E_UNSUPPORTED);
    EXPECT_EQ(always(xz("data", LZMA_CHECK_NONE)).bytes, "data");
}

}  // namespace
}  // namespace shf::test
