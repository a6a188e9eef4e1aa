// Lists of whole numbers in JSON: what is read, and where faults point.
#include "decode/number_list.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace shf::test {
namespace {

std::span<const uint8_t> field_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::vector<int64_t> list_of(std::string_view text, const std::string& member = "",
                             uint64_t max_decoded = 1 << 20) {
    const auto decoder = list_decoder(member, max_decoded);
    const ArrayType type = decoder->measure(field_of(text), 0).type;
    EXPECT_EQ(type.dtype, DType::i64);
    EXPECT_EQ(type.ndim, 1);
    std::vector<uint8_t> bytes(static_cast<size_t>(type.bytes()));
    DecodeScratch scratch;
    decoder->decode(field_of(text), 0, type, bytes, scratch);
    std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
}

std::string fault_of(std::string_view text, const std::string& member = "",
                     int32_t code = SHF_E_FORMAT) {
    try {
        list_of(text, member, 64);
        return "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
}

using Numbers = std::vector<int64_t>;

TEST(NumberList, whole_numbers) {
    EXPECT_EQ(list_of("[]"), Numbers());
    EXPECT_EQ(list_of(" [ \n] "), Numbers());
    EXPECT_EQ(list_of("[1,2 , -3\t,\r\n0,-0]"), (Numbers{1, 2, -3, 0, 0}));
    EXPECT_EQ(list_of("[9223372036854775807,-9223372036854775808]"),
              (Numbers{INT64_MAX, INT64_MIN}));
    std::string text = "[0";
    for (int i = 1; i < 5000; ++i) text += "," + std::to_string(i);
    const Numbers many = list_of(text + "]");
    ASSERT_EQ(many.size(), 5000U);
    for (size_t i = 0; i < many.size(); ++i) EXPECT_EQ(many[i], static_cast<int64_t>(i));
}

TEST(NumberList, a_member_of_an_object) {
    const std::string text =
        R"( {"text": "a \"[7]\" \\", "meta": {"ids": [9, {"a": [null]}], "b": 1.5e3}, "n": true,
             "ids": [1, 2], "mask" :[0,1] , "\u0069d": [5]} )";
    EXPECT_EQ(list_of(text, "ids"), (Numbers{1, 2}));
    EXPECT_EQ(list_of(text, "mask"), (Numbers{0, 1}));
    EXPECT_EQ(list_of(text, "id"), (Numbers{5}));
    // As json.loads of Python has it.
    EXPECT_EQ(list_of(R"({"a": [1], "a": [2, 3]})", "a"), (Numbers{2, 3}));
}

TEST(NumberList, faults_point_at_a_byte) {
    const auto at = [](std::string_view text, const std::string& member = "") {
        const std::string message = fault_of(text, member);
        const size_t byte = message.find("at byte ");
        return byte == std::string::npos
                   ? message
                   : message.substr(byte + 8, message.find(" of the field") - byte - 8);
    };
    EXPECT_EQ(at(""), "0");
    EXPECT_EQ(at("7"), "0");
    EXPECT_EQ(at("{\"a\": [1]}"), "0");
    EXPECT_EQ(at("[1, 2.0]"), "4");
    EXPECT_EQ(at("[1e3]"), "1");
    EXPECT_EQ(at("[1, true]"), "4");
    EXPECT_EQ(at("[1, null]"), "4");
    EXPECT_EQ(at("[1, \"2\"]"), "4");
    EXPECT_EQ(at("[1, [2]]"), "4");
    EXPECT_EQ(at("[01]"), "1");
    EXPECT_EQ(at("[+1]"), "1");
    EXPECT_EQ(at("[-]"), "1");
    EXPECT_EQ(at("[1,]"), "3");
    EXPECT_EQ(at("[,1]"), "1");
    EXPECT_EQ(at("[1 2]"), "3");
    EXPECT_EQ(at("[1, 2"), "5");
    EXPECT_EQ(at("[1] 2"), "4");
    EXPECT_EQ(at("[9223372036854775808]"), "1");
    EXPECT_EQ(at("[-9223372036854775809]"), "1");
    EXPECT_EQ(at("[99999999999999999999999]"), "1");
    EXPECT_EQ(at("[1]", "a"), "0");
    EXPECT_EQ(at("{\"a\": 5}", "a"), "6");
    EXPECT_EQ(at("{\"a\": [1}", "a"), "8");
    EXPECT_EQ(at("{\"a\": [1]", "a"), "9");
    EXPECT_EQ(at("{\"a\": [1]} x", "a"), "11");
    EXPECT_EQ(at("{\"a\" [1]}", "a"), "5");
    EXPECT_EQ(at("{\"a\": [1], \"b", "a"), "13");
    EXPECT_EQ(fault_of("[1, 2.5]"),
              "no list of whole numbers: there is \"2.5]\" at byte 4 of the field, "
              "where a whole number of 64 bits should be; help: correct the field, or give it "
              "another kind in decode");
    EXPECT_NE(fault_of("{\"a\": [1]}", "b").find("has no member \"b\""), std::string::npos);
}

TEST(NumberList, no_larger_than_allowed) {
    EXPECT_EQ(list_of("[1,2,3,4,5,6,7,8]", "", 64).size(), 8U);
    EXPECT_NE(fault_of("[1,2,3,4,5,6,7,8,9]", "", SHF_E_LIMIT).find("max_decoded=64"),
              std::string::npos);
}

}  // namespace
}  // namespace shf::test
