// Valid inputs, several frames, padding and junk: rules D3, D4 and D7 of docs/rules.md.
#include "codec/filter.h"
#include "codec/magic.h"
#include "filter_encoders.h"
#include "filter_outcome.h"

namespace shf::test {
namespace {

void expect_bytes(const Outcome& outcome, std::string_view data, std::string_view codec) {
    EXPECT_EQ(outcome.code, SHF_OK) << outcome.message;
    EXPECT_TRUE(outcome.bytes == data) << outcome.bytes.size() << " of " << data.size();
    EXPECT_EQ(outcome.codec, codec);
}

Options with(std::string_view name, std::string_view value) {
    Options options;
    options.set(name, value);
    return options;
}

class EachCodec : public testing::TestWithParam<const char*> {
  protected:
    [[nodiscard]] std::string pack(std::string_view data) const {
        return compress(GetParam(), data);
    }
};

INSTANTIATE_TEST_SUITE_P(Filter, EachCodec, testing::ValuesIn(codecs),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EachCodec, delivers_what_was_compressed) {
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{511}, size_t{64} << 10, (size_t{3} << 20) + 1}) {
        expect_bytes(always(pack(text(size))), text(size), GetParam());
        expect_bytes(always(pack(noise(size))), noise(size), GetParam());
    }
}

TEST_P(EachCodec, joins_frames) {
    const std::string a = text(70000, 1), b = noise(9000, 2), c = text(300, 3);
    expect_bytes(always(pack(a) + pack(b) + pack("") + pack(c)), a + b + c, GetParam());
}

TEST_P(EachCodec, passes_flood_of_empty_frames) {
    std::string flood;
    for (int i = 0; i < 20000; ++i) flood += pack("");
    expect_bytes(filter(flood + pack("end")), "end", GetParam());
    expect_bytes(filter(flood, {}, 7), "", GetParam());
}

TEST_P(EachCodec, accepts_zeros_behind_frames) {
    for (const size_t zeros : {1U, 3U, 4U, 512U, 300000U})
        expect_bytes(filter(pack("data") + std::string(zeros, '\0')), "data", GetParam());
    expect_bytes(always(pack("data") + std::string(1000, '\0')), "data", GetParam());
    expect_bytes(always(pack("data") + std::string(1000, '\0') + pack("more")), "datamore",
                 GetParam());
}

TEST_P(EachCodec, refuses_junk_behind_frames) {
    const Options ignore = with("trailing", "ignore");
    for (const std::string& junk :
         {std::string("x"), std::string("junk and more junk"), std::string("\0\0\0\0x", 5),
          noise(200000), pack("").substr(0, 2) + "junk", compress("xz", "x").substr(0, 5) + "!"}) {
        const std::string input = pack("data") + junk;
        const Outcome refused = always(input);
        EXPECT_EQ(refused.code, SHF_E_FORMAT) << refused.message;
        EXPECT_EQ(refused.bytes, "data");
        EXPECT_EQ(refused.offset, 4U);
        EXPECT_NE(refused.message.find("trailing=ignore"), std::string::npos);
        EXPECT_FALSE(refused.trailing);
        const Outcome ignored = always(input, ignore);
        expect_bytes(ignored, "data", GetParam());
        EXPECT_TRUE(ignored.trailing);
    }
    EXPECT_FALSE(always(pack("data"), ignore).trailing);
}

TEST_P(EachCodec, refuses_other_codec_behind_frames) {
    for (const char* other : codecs)
        if (other != std::string_view(GetParam())) {
            EXPECT_EQ(always(pack("data") + compress(other, "data")).code, SHF_E_FORMAT);
        }
}

TEST_P(EachCodec, refuses_second_layer) {
    for (const char* inner : codecs)
        for (const std::string& data : {std::string(), text(5000)}) {
            const Outcome outcome = always(pack(compress(inner, data)));
            EXPECT_EQ(outcome.code, SHF_E_UNSUPPORTED) << inner;
            EXPECT_EQ(outcome.offset, 0U);
        }
    // Neighbours: magics that are cut or not at the start are data.
    for (const std::string_view data : {"\x1f\x8b", "BZh9 is text", " \x28\xb5\x2f\xfd",
                                        "\xfd"
                                        "7zX"})
        expect_bytes(always(pack(data)), data, GetParam());
}

TEST(FilterPlain, passes_other_bytes_through) {
    for (const std::string& data : {std::string(), std::string("x"), std::string(512, '\0'),
                                    std::string("BZh9 is text, not bzip2"), text(1000000)}) {
        expect_bytes(always(data), data, "");
        EXPECT_FALSE(filter(data, with("trailing", "ignore")).trailing);
    }
}

TEST(FilterPlain, names_codecs_by_magic) {
    const auto codec = [](std::string_view head) {
        const char* name = codec_of_magic({bytes_of(head), head.size()});
        return std::string(name != nullptr ? name : "");
    };
    for (const char* name : codecs) {
        EXPECT_EQ(codec(compress(name, "data")), name);
        EXPECT_EQ(codec(compress(name, "")), name);
        EXPECT_EQ(codec(compress(name, "data").substr(0, 6)), name);
    }
    EXPECT_EQ(codec(skippable("")), "zstd");
    EXPECT_EQ(codec("\x22\xb5\x2f\xfd"), "zstd");
    EXPECT_EQ(codec("\x27\xb5\x2f\xfd"), "zstd");
    EXPECT_EQ(codec("\x21\xb5\x2f\xfd"), "");
    EXPECT_EQ(codec("\x02\x21\x4c\x18"), "lz4");
    EXPECT_EQ(codec("BZh0\x31\x41\x59\x26\x53\x59"), "");
    EXPECT_EQ(codec("BZh9\x31\x41\x59\x26\x53\x58"), "");
    EXPECT_EQ(codec("\x1f\x8b"), "");
    EXPECT_EQ(codec(""), "");
    EXPECT_STREQ(codec_of_suffix("a/b.tar.gz"), "gzip");
    EXPECT_STREQ(codec_of_suffix("b.tgz"), "gzip");
    EXPECT_STREQ(codec_of_suffix("b.tbz2"), "bzip2");
    EXPECT_STREQ(codec_of_suffix("b.tar.xz"), "xz");
    EXPECT_STREQ(codec_of_suffix("b.tzst"), "zstd");
    EXPECT_STREQ(codec_of_suffix("b.tar.lz4"), "lz4");
    EXPECT_EQ(codec_of_suffix("b.tar"), nullptr);
    for (const char* name : codecs)
        EXPECT_NE(std::string(codec_version(name)).find('.'), std::string::npos);
    EXPECT_EQ(codec_version("pipe"), nullptr);
}

TEST(FilterSkippable, frames_stand_anywhere) {
    const std::string skip = skippable(noise(70000)), empty = skippable("");
    expect_bytes(always(skip + zstd("a") + empty + zstd("b") + skip), "ab", "zstd");
    expect_bytes(always(empty + lz4("a") + skip + lz4("b") + empty), "ab", "lz4");
    expect_bytes(always(skip + empty), "", "zstd");
    EXPECT_EQ(always(gzip("a") + empty).code, SHF_E_FORMAT);
    EXPECT_EQ(always(empty + gzip("a")).code, SHF_E_FORMAT);
    EXPECT_EQ(always(empty + zstd("a") + lz4("b")).code, SHF_E_FORMAT);
}

TEST(FilterXz, padding_between_streams_is_counted) {
    expect_bytes(always(xz("a") + std::string(8, '\0') + xz("b")), "ab", "xz");
    EXPECT_EQ(always(xz("a") + std::string(6, '\0') + xz("b")).code, SHF_E_FORMAT);
}

}  // namespace
}  // namespace shf::test
