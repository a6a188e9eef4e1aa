// What a field of safetensors is, and what is refused of it.
#include "decode/safetensors.h"

#include "core/error.h"

#include "array_decoding.h"
#include "safetensors_builder.h"

#include <gtest/gtest.h>

namespace shf::test {
namespace {

constexpr uint64_t MiB = 1 << 20;

std::pair<int32_t, std::string> fault(const std::string& field, const std::string& tensor = "",
                                      uint64_t max_decoded = MiB) {
    return fault_of(*safetensors_decoder(tensor, max_decoded), field);
}

// Two tensors, the first one behind the second one, and what the package writes beside them.
std::string two() {
    return safetensors("{\"__metadata__\":{\"format\":\"pt\"}," +
                           tensor("model.w", "I32", "3", 4, 16) + "," +
                           tensor("b/\\u0061", "U8", "2,2", 0, 4) + "}   ",
                       "abcd" + elements<int32_t>({1, -2, 300000}));
}

TEST(Safetensors, every_dtype) {
    const std::vector<std::pair<std::string, DType>> dtypes = {
        {"BOOL", DType::bool8}, {"U8", DType::u8},   {"I8", DType::i8},     {"I16", DType::i16},
        {"U16", DType::u16},    {"F16", DType::f16}, {"BF16", DType::bf16}, {"I32", DType::i32},
        {"U32", DType::u32},    {"F32", DType::f32}, {"F64", DType::f64},   {"I64", DType::i64},
        {"U64", DType::u64},    {"C64", DType::c64}};
    for (const auto& [name, dtype] : dtypes) {
        const size_t size = 6 * traits_of(dtype).size;
        std::string bytes;
        for (size_t i = 0; i < size; ++i)
            bytes += static_cast<char>(dtype == DType::bool8 ? i % 2 : 17 * i + 1);
        const Decoded decoded =
            decode(*safetensors_decoder("", MiB),
                   safetensors("{" + tensor("x", name, "2,3", 0, size) + "}", bytes));
        EXPECT_EQ(decoded.type, (ArrayType{dtype, 2, {2, 3}})) << name;
        EXPECT_EQ(decoded.bytes, bytes) << name;
    }
}

TEST(Safetensors, a_bool_is_0_or_1) {
    const std::string field =
        safetensors("{" + tensor("x", "BOOL", "3", 0, 3) + "}", std::string("\0\7\xff", 3));
    EXPECT_EQ(numbers_of<uint8_t>(decode(*safetensors_decoder("x", MiB), field)),
              (std::vector<uint8_t>{0, 1, 1}));
}

TEST(Safetensors, dtypes_that_no_column_has) {
    for (const auto& [name, size] : std::vector<std::pair<std::string, size_t>>{{"F8_E4M3", 8},
                                                                                {"F8_E5M2", 8},
                                                                                {"F8_E8M0", 8},
                                                                                {"F6_E2M3", 6},
                                                                                {"F6_E3M2", 6},
                                                                                {"F4", 4}}) {
        const std::string field = safetensors("{" + tensor("x", name, "8", 0, size) + "," +
                                                  tensor("y", "U8", "1", size, size + 1) + "}",
                                              std::string(size, 'x') + "y");
        EXPECT_EQ(fault(field, "x").first, SHF_E_UNSUPPORTED) << name;
        EXPECT_EQ(decode(*safetensors_decoder("y", MiB), field).bytes, "y") << name;
    }
    EXPECT_EQ(
        fault(safetensors("{" + tensor("x", "F128", "1", 0, 16) + "}", std::string(16, 'x'))).first,
        SHF_E_UNSUPPORTED);
    // Half a byte.
    EXPECT_EQ(fault(safetensors("{" + tensor("x", "F4", "3", 0, 1) + "}", "x"), "x").first,
              SHF_E_FORMAT);
}

TEST(Safetensors, shapes) {
    for (const auto& [shape, size] :
         std::vector<std::pair<std::string, size_t>>{{"", 4},
                                                     {"1", 4},
                                                     {"2,2", 16},
                                                     {"1,1,1,1,1,1,2", 8},
                                                     {"0", 0},
                                                     {"3,0", 0},
                                                     {"0,9223372036854775807", 0}}) {
        const std::string field =
            safetensors("{" + tensor("x", "F32", shape, 0, size) + "}", std::string(size, 'x'));
        const auto [code, message] = fault(field);
        EXPECT_EQ(code, shape.size() < 16 ? SHF_OK : SHF_E_LIMIT) << shape << message;
    }
    EXPECT_EQ(fault(safetensors("{" + tensor("x", "U8", "1,1,1,1,1,1,1,1", 0, 1) + "}", "x")).first,
              SHF_E_LIMIT);
    EXPECT_EQ(
        fault(safetensors("{" + tensor("x", "U8", "0,9223372036854775808", 0, 0) + "}")).first,
        SHF_E_LIMIT);
    // Products that have no 64 bits.
    for (const char* shape :
         {"4294967296,4294967296", "18446744073709551615,2", "2305843009213693952,2,2,2,2"})
        EXPECT_EQ(fault(safetensors("{" + tensor("x", "U8", shape, 0, 0) + "}")).first,
                  SHF_E_FORMAT)
            << shape;
    EXPECT_EQ(fault(safetensors("{" + tensor("x", "F64", "2305843009213693952", 0, 0) + "}")).first,
              SHF_E_FORMAT);
}

TEST(Safetensors, tensors_by_name) {
    const std::string field = two();
    EXPECT_EQ(numbers_of<int32_t>(decode(*safetensors_decoder("model.w", MiB), field)),
              (std::vector<int32_t>{1, -2, 300000}));
    EXPECT_EQ(decode(*safetensors_decoder("b/a", MiB), field).bytes, "abcd");
    const auto [unnamed, text] = fault(field);
    EXPECT_EQ(unnamed, SHF_E_FORMAT);
    EXPECT_NE(text.find("has 2 tensors; help: safetensors/tensor=NAME names one of b/a, model.w"),
              std::string::npos)
        << text;
    const auto [unknown, why] = fault(field, "w");
    EXPECT_EQ(unknown, SHF_E_FORMAT);
    EXPECT_NE(why.find("has no tensor \"w\""), std::string::npos) << why;
    EXPECT_EQ(fault(field, "__metadata__").first, SHF_E_FORMAT);
    EXPECT_EQ(fault(safetensors("{}"), "x").first, SHF_E_FORMAT);
    EXPECT_EQ(fault(safetensors("{}")).first, SHF_E_FORMAT);
}

TEST(Safetensors, a_message_names_few_of_many_tensors) {
    std::string header = "{";
    for (size_t i = 0; i < 5000; ++i)
        header += (i == 0 ? "" : ",") + tensor("t" + std::to_string(i), "U8", "0", 0, 0);
    const auto [code, message] = fault(safetensors(header + "}"));
    EXPECT_EQ(code, SHF_E_FORMAT);
    EXPECT_NE(message.find("and 4992 more"), std::string::npos) << message;
    EXPECT_LT(message.size(), 400U);
}

TEST(Safetensors, tensors_lie_one_behind_another) {
    const auto of = [](uint64_t from, uint64_t to, const std::string& elements = "abcdefgh") {
        return fault(safetensors("{" + tensor("a", "U8", "4", 0, 4) + "," +
                                     tensor("b", "U8", std::to_string(to - from), from, to) + "}",
                                 elements),
                     "a")
            .first;
    };
    EXPECT_EQ(of(4, 8), SHF_OK);
    EXPECT_EQ(of(3, 7, "abcdefg"), SHF_E_FORMAT);
    EXPECT_EQ(of(5, 9, "abcdefghi"), SHF_E_FORMAT);
    EXPECT_EQ(of(4, 9), SHF_E_FORMAT);
    EXPECT_EQ(of(4, 7), SHF_E_FORMAT);
    EXPECT_EQ(of(0, 4, "abcd"), SHF_E_FORMAT);
    EXPECT_EQ(of(4, 4, "abcd"), SHF_OK);
    // A header that ends where it begins, or before.
    EXPECT_EQ(fault(safetensors("{" + tensor("a", "U8", "0", 4, 0) + "}", "abcd")).first,
              SHF_E_FORMAT);
    EXPECT_EQ(
        fault(safetensors("{" + tensor("a", "U8", "4", 18446744073709551615U, 3) + "}", "abcd"))
            .first,
        SHF_E_FORMAT);
    EXPECT_EQ(fault(safetensors("{" + tensor("a", "U8", "4", 0, 5) + "}", "abcde")).first,
              SHF_E_FORMAT);
    EXPECT_EQ(fault(safetensors("{" + tensor("a", "U16", "4", 0, 4) + "}", "abcd")).first,
              SHF_E_FORMAT);
}

TEST(Safetensors, headers_that_are_none) {
    const std::string sound = tensor("x", "U8", "1", 0, 1);
    EXPECT_EQ(fault(safetensors("{" + sound + "}", "x")).first, SHF_OK);
    EXPECT_EQ(fault(safetensors("{" + sound + "} \n", "x")).first, SHF_OK);
    for (const std::string& header : std::vector<std::string>{
             "",
             " {" + sound + "}",
             "[" + sound + "]",
             "\xef\xbb\xbf{" + sound + "}",
             "{" + sound,
             "{" + sound + "}}",
             "{" + sound + "}{}",
             "{" + sound + "}" + std::string(1, '\0'),
             "{" + sound + "}" + std::string(1, '\0') + "x",
             "{" + sound + ",}",
             "{" + sound + "," + sound + "}",
             "{" + sound + "," + tensor("x", "U8", "0", 1, 1) + "}",
             "{" + sound + ",\"y\":1}",
             "{" + sound + ",\"y\":\"U8\"}",
             "{" + sound + ",\"y\":[]}",
             "{" + sound + ",\"y\":null}",
             "{" + sound + ",\"y\":true}",
             "{" + sound + ",\"y\":{}}",
             "{" + sound + ",\"\xff\":" + sound.substr(4) + "}",
             "{" + sound + ",\"__metadata__\":1}",
             "{" + sound + ",\"__metadata__\":{\"a\":1}}",
             "{" + sound + ",\"__metadata__\":{\"a\":{}}}",
             "{" + sound + ",\"__metadata__\":{\"a\":[]}}",
             "{" + sound + ",\"__metadata__\":{},\"__metadata__\":{}}",
             R"({"x":{"dtype":"U8","shape":[1]}})",
             R"({"x":{"dtype":"U8","data_offsets":[0,1]}})",
             R"({"x":{"shape":[1],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})",
             R"({"x":{"dtype":1,"shape":[1],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":["U8"],"shape":[1],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":{},"shape":[1],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":"1","data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[{}],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})",
             R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
             R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[]}})",
             R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})",
             R"({"x":{"dtype":"U8","shape":[1],"data_offsets":{"0":1}}})",
             R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[-0,1.0]}})"})
        EXPECT_EQ(fault(safetensors(header, "x")).first, SHF_E_FORMAT) << header;
}

TEST(Safetensors, lengths_of_headers) {
    const std::string file = two();
    for (const uint64_t length :
         {uint64_t{0}, uint64_t{1}, uint64_t{file.size() - 8}, uint64_t{file.size() - 7},
          uint64_t{100'000'001}, UINT64_MAX - 7, UINT64_MAX}) {
        std::string damaged = file;
        damaged.replace(0, 8, le64_text(length));
        EXPECT_EQ(fault(damaged, "model.w").first, SHF_E_FORMAT) << length;
    }
    std::string spaces = "{" + tensor("x", "U8", "1", 0, 1) + "}";
    spaces.resize(100'000'000, ' ');
    EXPECT_EQ(fault(safetensors(spaces, "x")).first, SHF_OK);
    EXPECT_EQ(fault(safetensors(spaces + " ", "x")).first, SHF_E_FORMAT);
}

TEST(Safetensors, limits) {
    const auto [code, message] = fault(two(), "model.w", 11);
    EXPECT_EQ(code, SHF_E_LIMIT);
    EXPECT_NE(message.find("max_decoded=11"), std::string::npos) << message;
    EXPECT_EQ(fault(two(), "model.w", 12).first, SHF_OK);
}

TEST(Safetensors, every_prefix_and_every_more_is_refused) {
    const std::string whole = two();
    for (size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(fault(whole.substr(0, size), "b/a").first, SHF_E_FORMAT) << size;
    EXPECT_EQ(fault(whole, "b/a").first, SHF_OK);
    EXPECT_EQ(fault(whole + "x", "b/a").first, SHF_E_FORMAT);
}

TEST(Safetensors, no_damage_of_the_header_reads_beside_the_elements) {
    const std::string whole = two();
    for (size_t at = 0; at < whole.size() - 16; ++at)
        for (int value = 0; value < 256; ++value) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(value);
            try {
                const Decoded decoded = decode(*safetensors_decoder("model.w", MiB), damaged);
                EXPECT_EQ(decoded.bytes, whole.substr(whole.size() - 12)) << at << " " << value;
            } catch (const Error& error) {
                EXPECT_TRUE(error.code() == SHF_E_FORMAT || error.code() == SHF_E_UNSUPPORTED)
                    << error.what();
            }
        }
}

}  // namespace
}  // namespace shf::test
