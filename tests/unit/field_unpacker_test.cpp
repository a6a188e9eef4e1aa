// Compressed fields: what comes out of them, and what is refused.
#include "decode/field_unpacker.h"

#include "core/error.h"

#include "filter_encoders.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace shf::test {
namespace {

constexpr UnpackLimits usual{1 << 20, 8 << 20};

struct Outcome {
    int32_t code = SHF_OK;
    std::string words, bytes;
};

// With a decoder and memory that are used again.
Outcome unpacked(FieldCodec codec, std::string_view field, const UnpackLimits& limits = usual) {
    static FieldUnpacker unpacker;
    static UnpackedField out;
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> copy(field.begin(), field.end());
    try {
        const std::span<const uint8_t> bytes = unpacker.unpack(codec, copy, limits, out);
        return {SHF_OK, {}, {bytes.begin(), bytes.end()}};
    } catch (const Error& error) {
        return {error.code(), error.what(), {}};
    }
}

std::string packed(FieldCodec codec, std::string_view data) {
    return codec == FieldCodec::gzip ? gzip(data) : zstd(data);
}
constexpr std::array both_codecs{FieldCodec::gzip, FieldCodec::zstd};

TEST(FieldUnpacker, names_say_the_codec) {
    using Pair = std::pair<FieldCodec, std::string_view>;
    EXPECT_EQ(field_codec("json.gz"), (Pair{FieldCodec::gzip, "json"}));
    EXPECT_EQ(field_codec("a.npy.zst"), (Pair{FieldCodec::zstd, "a.npy"}));
    EXPECT_EQ(field_codec("json.gz.gz"), (Pair{FieldCodec::gzip, "json.gz"}));
    EXPECT_EQ(field_codec("gz"), (Pair{FieldCodec::gzip, ""}));
    EXPECT_EQ(field_codec("json"), (Pair{FieldCodec::none, "json"}));
    EXPECT_EQ(field_codec("tgz"), (Pair{FieldCodec::none, "tgz"}));
    EXPECT_EQ(field_codec("gz.json"), (Pair{FieldCodec::none, "gz.json"}));
    EXPECT_EQ(field_codec(""), (Pair{FieldCodec::none, ""}));
}

TEST(FieldUnpacker, everything_comes_out) {
    for (const FieldCodec codec : both_codecs)
        for (const size_t size : std::initializer_list<size_t>{0, 1, 5, 4096, 70000, 1 << 20})
            for (const std::string& data : {text(size), noise(size)}) {
                const Outcome outcome = unpacked(codec, packed(codec, data));
                EXPECT_EQ(outcome.code, SHF_OK) << outcome.words;
                EXPECT_TRUE(outcome.bytes == data) << size;
            }
    const std::string data = text(300000);
    EXPECT_TRUE(unpacked(FieldCodec::zstd, zstd(data, {.content_size = false})).bytes == data);
    EXPECT_TRUE(unpacked(FieldCodec::zstd, zstd(data, {.checksum = false})).bytes == data);
}

TEST(FieldUnpacker, members_and_frames_follow_one_another) {
    const std::string a = text(5000, 1), b = text(50000, 2), zeros(600, '\0');
    EXPECT_EQ(unpacked(FieldCodec::gzip, gzip(a) + gzip("") + zeros + gzip(b) + zeros).bytes,
              a + b);
    EXPECT_EQ(unpacked(FieldCodec::zstd, skippable("x") + zstd(a) + zstd("") + skippable(zeros) +
                                             zstd(b) + skippable(""))
                  .bytes,
              a + b);
    std::string many;  // neither recurses nor takes long
    for (int i = 0; i < 50000; ++i) many += skippable("");
    EXPECT_EQ(unpacked(FieldCodec::zstd, many + zstd(a)).bytes, a);
    EXPECT_EQ(unpacked(FieldCodec::zstd, many).bytes, "");
}

TEST(FieldUnpacker, what_is_something_else) {
    const Outcome plain = unpacked(FieldCodec::gzip, "{\"a\": 1}");
    EXPECT_EQ(plain.code, SHF_E_FORMAT);
    EXPECT_NE(plain.words.find("does not begin as gzip data does"), plain.words.npos)
        << plain.words;
    EXPECT_NE(plain.words.find("bytes/compressed"), plain.words.npos) << plain.words;
    const Outcome other = unpacked(FieldCodec::gzip, zstd("text"));
    EXPECT_EQ(other.code, SHF_E_FORMAT);
    EXPECT_NE(other.words.find("but as zstd"), other.words.npos) << other.words;
    EXPECT_EQ(unpacked(FieldCodec::zstd, gzip("text")).code, SHF_E_FORMAT);
    EXPECT_EQ(unpacked(FieldCodec::gzip, skippable("a") + gzip("text")).code, SHF_E_FORMAT);
    for (const FieldCodec codec : both_codecs) {
        EXPECT_EQ(unpacked(codec, "").code, SHF_E_FORMAT);
        EXPECT_EQ(unpacked(codec, std::string(100, '\0')).code, SHF_E_FORMAT);
        const Outcome behind = unpacked(codec, packed(codec, "text") + "more");
        EXPECT_EQ(behind.code, SHF_E_FORMAT);
        EXPECT_NE(behind.words.find("starts no more of it"), behind.words.npos) << behind.words;
    }
    EXPECT_EQ(unpacked(FieldCodec::gzip, gzip("a") + zstd("b")).code, SHF_E_FORMAT);
    // A header that asks for dictionary 7 (RFC 8878, 3.1.1.1).
    EXPECT_EQ(
        unpacked(FieldCodec::zstd, std::string("\x28\xb5\x2f\xfd\x01\0\x07\x01\0\0", 10)).code,
        SHF_E_UNSUPPORTED);
}

TEST(FieldUnpacker, every_prefix_is_an_error) {
    for (const FieldCodec codec : both_codecs) {
        const std::string field = packed(codec, text(300)) + packed(codec, noise(200));
        const size_t first = packed(codec, text(300)).size();
        const size_t magic = codec == FieldCodec::gzip ? 3 : 4;
        for (size_t size = 0; size < field.size(); ++size) {
            if (size == first) continue;
            const Outcome outcome = unpacked(codec, std::string_view(field).substr(0, size));
            ASSERT_EQ(outcome.code, size < magic ? SHF_E_FORMAT : SHF_E_TRUNCATED)
                << size << outcome.words;
        }
    }
}

TEST(FieldUnpacker, every_damaged_byte_is_an_error_or_makes_no_difference) {
    for (const FieldCodec codec : both_codecs) {
        const std::string data = text(400) + noise(300), field = packed(codec, data);
        for (size_t i = 0; i < field.size(); ++i)
            for (const int change : {1, 2, 0x10, 0x80, 0xff}) {
                std::string damaged = field;
                damaged[i] = static_cast<char>(damaged[i] ^ change);
                const Outcome outcome = unpacked(codec, damaged);
                // The time and the system in a header of gzip say nothing of the data.
                if (outcome.code == SHF_OK)
                    ASSERT_TRUE(outcome.bytes == data) << i;
                else
                    ASSERT_TRUE(outcome.code == SHF_E_FORMAT || outcome.code == SHF_E_INTEGRITY ||
                                outcome.code == SHF_E_TRUNCATED || outcome.code == SHF_E_LIMIT ||
                                outcome.code == SHF_E_UNSUPPORTED)
                        << i << outcome.words;
            }
    }
    std::string wrong = gzip("text");
    wrong[wrong.size() - 6] ^= 1;
    EXPECT_EQ(unpacked(FieldCodec::gzip, wrong).code, SHF_E_INTEGRITY);
    wrong = zstd("text");
    wrong.back() ^= 1;
    EXPECT_EQ(unpacked(FieldCodec::zstd, wrong).code, SHF_E_INTEGRITY);
}

TEST(FieldUnpacker, no_more_comes_out_than_the_limit) {
    for (const FieldCodec codec : both_codecs) {
        const std::string field = packed(codec, std::string(50000, 'a'));
        EXPECT_EQ(unpacked(codec, field, {50000, 1 << 20}).code, SHF_OK);
        const Outcome outcome = unpacked(codec, field, {49999, 1 << 20});
        EXPECT_EQ(outcome.code, SHF_E_LIMIT);
        EXPECT_NE(outcome.words.find("49999 bytes"), outcome.words.npos) << outcome.words;
        EXPECT_NE(outcome.words.find("help: raise max_decoded"), outcome.words.npos);
        EXPECT_EQ(unpacked(codec, packed(codec, ""), {0, 1 << 20}).code, SHF_OK);
        // In several, where none alone is too large.
        EXPECT_EQ(unpacked(codec, field + field, {99999, 1 << 20}).code, SHF_E_LIMIT);
    }
    EXPECT_EQ(unpacked(FieldCodec::zstd, zstd(text(100), {.window_log = 24, .content_size = false}),
                       {1000, 1 << 20})
                  .code,
              SHF_E_LIMIT);
}

// A claim of much makes nobody allocate it.
TEST(FieldUnpacker, claims_are_not_believed) {
    std::string field = gzip(text(1000));
    for (size_t i = 1; i <= 4; ++i) field[field.size() - i] = '\x7f';
    EXPECT_EQ(unpacked(FieldCodec::gzip, field, {uint64_t{1} << 40, 1 << 20}).code,
              SHF_E_INTEGRITY);
    // Single segment, 8 bytes of size, one raw block that is the last one (RFC 8878, 3.1.1).
    std::string claim = "\x28\xb5\x2f\xfd";
    claim += '\xc0';
    claim += std::string(4, '\0') + std::string(1, '\x10') + std::string(3, '\0');  // 64 GiB
    claim += std::string("\x09\0\0a", 4);
    EXPECT_EQ(unpacked(FieldCodec::zstd, claim, {uint64_t{1} << 50, uint64_t{1} << 31}).code,
              SHF_E_LIMIT);
    EXPECT_EQ(unpacked(FieldCodec::zstd, claim).code, SHF_E_LIMIT);
}

}  // namespace
}  // namespace shf::test
