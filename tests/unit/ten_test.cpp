// What a field in TenBin is, and what is refused of it.
#include "decode/ten.h"

#include "core/error.h"

#include "array_decoding.h"
#include "ten_builder.h"

#include <gtest/gtest.h>

#include <optional>

namespace shf::test {
namespace {

constexpr uint64_t MiB = 1 << 20;
constexpr std::optional<uint64_t> the_only_one;

std::pair<int32_t, std::string> fault(const std::string& field,
                                      std::optional<uint64_t> part = the_only_one,
                                      uint64_t max_decoded = MiB) {
    return fault_of(*ten_decoder(part, max_decoded), field);
}

const std::vector<int32_t> three = {1, -2, 300000};

TEST(Ten, every_dtype) {
    const std::vector<std::pair<std::string, DType>> dtypes = {
        {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}, {"i1", DType::i8},
        {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64}, {"u1", DType::u8},
        {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64}};
    for (const auto& [code, dtype] : dtypes) {
        const size_t size = traits_of(dtype).size;
        std::string bytes;
        for (size_t i = 0; i < 6 * size; ++i) bytes += static_cast<char>(17 * i + 1);
        const Decoded decoded = decode(*ten_decoder({}, MiB), ten(code, {2, 3}, bytes));
        EXPECT_EQ(decoded.type, (ArrayType{dtype, 2, {2, 3}})) << code;
        EXPECT_EQ(decoded.bytes, bytes) << code;
    }
    for (const char* code : {"b1", "c8", "f3", "float32", "", "F4", "f4\1"}) {
        const auto [error, message] = fault(ten(code, {1}, std::string(4, 'x')));
        EXPECT_EQ(error, SHF_E_UNSUPPORTED) << code << message;
    }
}

TEST(Ten, shapes) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
             {}, {1}, {4, 1}, {2, 2}, {1, 2, 1, 2, 1, 1, 1}, {0}, {3, 0}, {17}}) {
        int64_t count = 1;
        for (const int64_t length : shape) count *= length;
        const std::string bytes(static_cast<size_t>(count) * 4, 'x');
        const Decoded decoded = decode(*ten_decoder({}, MiB), ten("f4", shape, bytes));
        EXPECT_EQ(std::vector<int64_t>(decoded.type.dimensions().begin(),
                                       decoded.type.dimensions().end()),
                  shape);
        EXPECT_EQ(decoded.bytes, bytes);
    }
}

TEST(Ten, arrays_by_number) {
    const std::string field = ten("i4", {3}, elements(three), "first") + ten("u1", {2, 2}, "abcd") +
                              ten("f8", {}, elements<double>({2.5}));
    EXPECT_EQ(numbers_of<int32_t>(decode(*ten_decoder(0, MiB), field)), three);
    EXPECT_EQ(decode(*ten_decoder(1, MiB), field).bytes, "abcd");
    EXPECT_EQ(numbers_of<double>(decode(*ten_decoder(2, MiB), field)), std::vector<double>{2.5});
    const auto [several, text] = fault(field);
    EXPECT_EQ(several, SHF_E_FORMAT);
    EXPECT_NE(text.find("the field has 3 arrays"), std::string::npos) << text;
    EXPECT_NE(text.find("ten/part=0 to ten/part=2"), std::string::npos) << text;
    const auto [too_many, why] = fault(field, 3);
    EXPECT_EQ(too_many, SHF_E_FORMAT);
    EXPECT_NE(why.find("has 3 arrays, and no part 3"), std::string::npos) << why;
    EXPECT_EQ(fault("").first, SHF_E_FORMAT);
    EXPECT_EQ(fault("", 0).first, SHF_E_FORMAT);
}

TEST(Ten, limits) {
    const std::string field = ten("i4", {3}, elements(three));
    const auto [code, message] = fault(field, {}, 11);
    EXPECT_EQ(code, SHF_E_LIMIT);
    EXPECT_NE(message.find("max_decoded=11"), std::string::npos) << message;
    EXPECT_EQ(fault(field, {}, 12).first, SHF_OK);
    const std::string deep = ten("u1", {1, 1, 1, 1, 1, 1, 1, 1}, "x");
    EXPECT_EQ(fault(deep).first, SHF_E_LIMIT);
    // Beside the one that is wanted it is sound: the format has nine dimensions.
    EXPECT_EQ(fault(deep + field, 1).first, SHF_OK);
    EXPECT_EQ(fault(ten("u1", std::vector<int64_t>(10, 1), "x") + field, 1).first, SHF_E_FORMAT);
}

TEST(Ten, headers_that_are_none) {
    const auto of_header = [](const std::string& header) {
        return fault(ten_chunk(header) + ten_chunk(elements(three)));
    };
    const std::string sound = ten_header("i4", {3});
    EXPECT_EQ(of_header(sound).first, SHF_OK);
    EXPECT_EQ(of_header(sound.substr(0, 24)).first, SHF_E_FORMAT);
    EXPECT_EQ(of_header(sound.substr(0, 16)).first, SHF_E_FORMAT);
    EXPECT_EQ(of_header("").first, SHF_E_FORMAT);
    EXPECT_EQ(of_header(sound + "x").first, SHF_E_FORMAT);
    EXPECT_EQ(of_header(sound + le64_text(1)).first, SHF_E_FORMAT);
    for (const uint64_t ndim : {uint64_t{0}, uint64_t{2}, uint64_t{10}, UINT64_MAX}) {
        std::string header = sound;
        header.replace(16, 8, le64_text(ndim));
        EXPECT_EQ(of_header(header).first, SHF_E_FORMAT) << ndim;
    }
    // Lengths that are negative, or whose product has no 63 bits.
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
             {-3}, {INT64_MIN}, {INT64_MAX}, {1LL << 32, 1LL << 32}, {1LL << 62, 4, 3}, {2}, {4}})
        EXPECT_EQ(of_header(ten_header("i4", shape)).first, SHF_E_FORMAT);
    EXPECT_EQ(fault(ten_chunk(sound)).first, SHF_E_FORMAT);
}

TEST(Ten, every_prefix_and_every_more_is_refused) {
    const std::string one = ten("i4", {3}, elements(three));
    const std::string whole = one + one;
    for (size_t size = 0; size < whole.size(); ++size) {
        const auto [code, message] = fault(whole.substr(0, size), 0);
        // The end of an array: nothing shows that more followed, and part=1 is not there.
        EXPECT_EQ(code, size == one.size() ? SHF_OK : SHF_E_FORMAT) << size << message;
        EXPECT_EQ(fault(whole.substr(0, size), 1).first, SHF_E_FORMAT) << size;
    }
    EXPECT_EQ(fault(whole, 0).first, SHF_OK);
    EXPECT_EQ(fault(whole + "x", 0).first, SHF_E_FORMAT);
    EXPECT_EQ(fault(whole + std::string(64, '\0'), 0).first, SHF_E_FORMAT);
}

TEST(Ten, no_damage_of_headers_reads_beside_the_elements) {
    const std::string whole = ten("i4", {3}, elements(three)) + ten("u1", {5}, "abcde");
    const size_t data = 16 + 64 + 16;
    for (size_t at = 0; at < whole.size(); ++at) {
        if (at >= data && at < data + 64) continue;
        for (int value = 0; value < 256; ++value) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(value);
            try {
                EXPECT_EQ(decode(*ten_decoder(0, MiB), damaged).bytes.size(), 12U) << at;
            } catch (const Error& error) {
                EXPECT_TRUE(error.code() == SHF_E_FORMAT || error.code() == SHF_E_UNSUPPORTED)
                    << error.what();
            }
        }
    }
}

}  // namespace
}  // namespace shf::test
