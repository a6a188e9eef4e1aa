// What an .npy field is, and what is refused of it.
#include "decode/npy.h"

#include "core/error.h"

#include "array_decoding.h"
#include "npy_builder.h"
#include "zip_builder.h"
#include "zip_encoders.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>

namespace shf::test {
namespace {

constexpr uint64_t MiB = 1 << 20;
constexpr uint16_t zip_stored = 0;

// Beside those of .npy below.
using test::decode;
using test::fault_of;

Decoded decode(std::string_view field, uint64_t max_decoded = MiB) {
    return decode(*npy_decoder(max_decoded), field);
}

std::pair<int32_t, std::string> fault_of(std::string_view field, uint64_t max_decoded = MiB) {
    return fault_of(*npy_decoder(max_decoded), field);
}

template <typename Number>
std::vector<Number> swapped(std::vector<Number> numbers, size_t word = sizeof(Number)) {
    auto* bytes = reinterpret_cast<char*>(numbers.data());
    for (size_t at = 0; at < numbers.size() * sizeof(Number); at += word)
        std::reverse(bytes + at, bytes + at + word);
    return numbers;
}

template <typename Number>
void expect_dtype(const std::string& code, DType dtype, const std::vector<Number>& numbers,
                  size_t word = sizeof(Number)) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(numbers.size())};
    for (const char* order : {"<", "=", "|"}) {
        if (*order == '|' && sizeof(Number) > 1) continue;
        const Decoded decoded = decode(npy(order + code, shape, numbers));
        EXPECT_EQ(decoded.type.dtype, dtype) << code;
        EXPECT_EQ(numbers_of<Number>(decoded), numbers) << code;
    }
    EXPECT_EQ(numbers_of<Number>(decode(npy(">" + code, shape, swapped(numbers, word)))), numbers)
        << code;
}

TEST(Npy, every_dtype_in_both_byte_orders) {
    expect_dtype<uint8_t>("b1", DType::bool8, {0, 1, 1});
    expect_dtype<int8_t>("i1", DType::i8, {-128, 0, 127});
    expect_dtype<int16_t>("i2", DType::i16, {-32768, 1, 32767});
    expect_dtype<int32_t>("i4", DType::i32, {INT32_MIN, 1, INT32_MAX});
    expect_dtype<int64_t>("i8", DType::i64, {INT64_MIN, 1, INT64_MAX});
    expect_dtype<uint8_t>("u1", DType::u8, {0, 1, 255});
    expect_dtype<uint16_t>("u2", DType::u16, {0, 258, 65535});
    expect_dtype<uint32_t>("u4", DType::u32, {0, 16909060, UINT32_MAX});
    expect_dtype<uint64_t>("u8", DType::u64, {0, 72623859790382856, UINT64_MAX});
    expect_dtype<uint16_t>("f2", DType::f16, {0x3c00, 0x1234});
    expect_dtype<float>("f4", DType::f32, {1.5F, -2.25F});
    expect_dtype<double>("f8", DType::f64, {1.5, -2.25});
    expect_dtype<std::complex<float>>("c8", DType::c64, {{1.5F, 2.5F}, {-3.0F, 0.25F}}, 4);
    expect_dtype<std::complex<double>>("c16", DType::c128, {{1.5, 2.5}, {-3.0, 0.25}}, 8);
}

TEST(Npy, a_bool_is_0_or_1) {
    EXPECT_EQ(numbers_of<uint8_t>(decode(npy<uint8_t>("|b1", {3}, {0, 7, 255}))),
              (std::vector<uint8_t>{0, 1, 1}));
}

TEST(Npy, shapes) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
             {}, {1}, {4, 1}, {2, 2}, {1, 2, 1, 2, 1, 1, 1}, {0}, {3, 0}}) {
        int64_t count = 1;
        for (const int64_t length : shape) count *= length;
        std::vector<int32_t> numbers(static_cast<size_t>(count), 7);
        const Decoded decoded = decode(npy("<i4", shape, numbers));
        EXPECT_EQ(std::vector<int64_t>(decoded.type.dimensions().begin(),
                                       decoded.type.dimensions().end()),
                  shape);
        EXPECT_EQ(numbers_of<int32_t>(decoded), numbers);
    }
}

TEST(Npy, fortran_order) {
    // Element (i, j, k) of a 2 x 3 x 4 array is 100 i + 10 j + k.
    std::vector<int16_t> fortran, c_order;
    for (int k = 0; k < 4; ++k)
        for (int j = 0; j < 3; ++j)
            for (int i = 0; i < 2; ++i)
                fortran.push_back(static_cast<int16_t>(100 * i + 10 * j + k));
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 4; ++k)
                c_order.push_back(static_cast<int16_t>(100 * i + 10 * j + k));
    EXPECT_EQ(numbers_of<int16_t>(decode(npy("<i2", {2, 3, 4}, fortran, true))), c_order);
    EXPECT_EQ(numbers_of<int16_t>(decode(npy(">i2", {2, 3, 4}, swapped(fortran), true))), c_order);
    EXPECT_EQ(numbers_of<int16_t>(decode(npy("<i2", {24}, fortran, true))), fortran);
    // Every size of element.
    EXPECT_EQ(numbers_of<uint8_t>(decode(npy<uint8_t>("|u1", {2, 2}, {1, 2, 3, 4}, true))),
              (std::vector<uint8_t>{1, 3, 2, 4}));
    EXPECT_EQ(numbers_of<float>(decode(npy<float>("<f4", {2, 2}, {1, 2, 3, 4}, true))),
              (std::vector<float>{1, 3, 2, 4}));
    EXPECT_EQ(numbers_of<double>(decode(npy<double>("<f8", {2, 2}, {1, 2, 3, 4}, true))),
              (std::vector<double>{1, 3, 2, 4}));
    EXPECT_EQ(numbers_of<std::complex<double>>(
                  decode(npy<std::complex<double>>("<c16", {2, 2}, {1, 2, 3, 4}, true))),
              (std::vector<std::complex<double>>{1, 3, 2, 4}));
}

TEST(Npy, versions) {
    const std::vector<int32_t> numbers = {1, 2, 3};
    for (const int version : {1, 2, 3})
        EXPECT_EQ(numbers_of<int32_t>(decode(npy("<i4", {3}, numbers, false, version))), numbers);
    for (const int version : {0, 4, 255})
        EXPECT_EQ(fault_of(npy("<i4", {3}, numbers, false, version)).first, SHF_E_UNSUPPORTED);
    std::string minor = npy("<i4", {3}, numbers);
    minor[7] = 1;
    EXPECT_EQ(fault_of(minor).first, SHF_E_UNSUPPORTED);
}

std::string with_literal(const std::string& literal) {
    return npy_header(literal) + std::string(12, '\1');
}

TEST(Npy, other_writers_spell_the_header_differently) {
    for (const char* literal : {
             "{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<i4\"}",
             "{ 'descr' : '<i4' , 'fortran_order' : False , 'shape' : ( 3 , ) , }",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (3L,), }",
             "{'descr': 'i4', 'fortran_order': False, 'shape': (1, 3)}",
         })
        EXPECT_EQ(fault_of(with_literal(literal)).first, SHF_OK) << literal;
}

TEST(Npy, a_header_is_never_evaluated) {
    for (const char* literal : {
             "{'descr': '<i4', 'fortran_order': False, 'shape': (1+2,), }",
             "{'descr': '<i4', 'fortran_order': not True, 'shape': (3,), }",
             "{'descr': str('<i4'), 'fortran_order': False, 'shape': (3,), }",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }; import os",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (3), }",
             "{'descr': '<i4', 'fortran_order': False, 'shape': [3], }",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (-3,), }",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
             "{'descr': '<i4', 'fortran_order': False}",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': (3,)}",
             "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
             "{'descr': '<i4",
             "",
         })
        EXPECT_EQ(fault_of(with_literal(literal)).first, SHF_E_FORMAT) << literal;
}

TEST(Npy, what_is_not_numbers_is_unsupported) {
    for (const char* descr :
         {"|O", "|S4", "<U4", "<M8[ns]", "<m8[s]", "|V8", "<f16", "<c32", "<f3"}) {
        const auto [code, message] = fault_of(with_literal(npy_literal(descr, {3})));
        EXPECT_EQ(code, SHF_E_UNSUPPORTED) << descr << ": " << message;
    }
    EXPECT_EQ(fault_of(with_literal("{'descr': [('a', '<i4')], 'fortran_order': False, "
                                    "'shape': (3,)}"))
                  .first,
              SHF_E_UNSUPPORTED);
}

TEST(Npy, limits) {
    const auto [code, message] = fault_of(npy<int32_t>("<i4", {3}, {1, 2, 3}), 11);
    EXPECT_EQ(code, SHF_E_LIMIT);
    EXPECT_NE(message.find("max_decoded=11"), std::string::npos) << message;
    EXPECT_EQ(fault_of(npy<int32_t>("<i4", {3}, {1, 2, 3}), 12).first, SHF_OK);
    // More than 63 bits.
    EXPECT_EQ(fault_of(npy<int32_t>("<i4", {INT64_MAX, 1}, {})).first, SHF_E_LIMIT);
    EXPECT_EQ(fault_of(npy<int32_t>("<i4", {INT64_MAX, INT64_MAX}, {})).first, SHF_E_LIMIT);
    EXPECT_EQ(fault_of(npy<int32_t>("<i4", {INT64_MAX, INT64_MAX, 0}, {})).first, SHF_E_LIMIT);
    EXPECT_EQ(fault_of(npy<int32_t>("<i4", {1 << 30, 0}, {})).first, SHF_OK);
    EXPECT_EQ(fault_of(npy<int32_t>("<i4", {1, 1, 1, 1, 1, 1, 1, 1}, {1})).first, SHF_E_LIMIT);
}

TEST(Npy, every_prefix_and_every_more_is_refused) {
    const std::string whole = npy<int32_t>("<i4", {3}, {1, 2, 3});
    for (size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(fault_of(whole.substr(0, size)).first, SHF_E_FORMAT) << size;
    EXPECT_EQ(fault_of(whole).first, SHF_OK);
    EXPECT_EQ(fault_of(whole + "x").first, SHF_E_FORMAT);
}

TEST(Npy, no_damage_of_the_header_reads_beside_the_numbers) {
    const std::string whole = npy<int32_t>("<i4", {3}, {1, 2, 3});
    for (size_t at = 0; at < whole.size() - 12; ++at)
        for (int value = 0; value < 256; ++value) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(value);
            try {
                EXPECT_EQ(decode(damaged).bytes.size(), 12U) << at << " " << value;
            } catch (const Error&) {  // most of them
            }
        }
}

TEST(Npz, members_by_name) {
    Zip zip;
    zip.entries.push_back({.name = "a.npy", .data = npy<int32_t>("<i4", {2}, {1, 2})});
    zip.entries.push_back({.name = "b.npy", .data = npy<double>("<f8", {}, {2.5})});
    const std::string file = zip.bytes();
    EXPECT_EQ(numbers_of<int32_t>(decode(*npz_decoder("a", MiB), file)),
              (std::vector<int32_t>{1, 2}));
    EXPECT_EQ(numbers_of<double>(decode(*npz_decoder("b.npy", MiB), file)),
              std::vector<double>{2.5});
    EXPECT_THROW(decode(*npz_decoder("c", MiB), file), Error);
    EXPECT_THROW(decode(*npz_decoder("a", 7), file), Error);
    EXPECT_THROW(decode(*npz_decoder("a", MiB), file.substr(0, file.size() - 1)), Error);
    zip.entries.push_back({.name = "a", .data = npy<int32_t>("<i4", {2}, {3, 4})});
    try {
        decode(*npz_decoder("a", MiB), zip.bytes());
        FAIL() << "which of two members is read is not known";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), SHF_E_AMBIGUOUS);
    }
}

TEST(Npz, members_by_any_method) {
    std::vector<int32_t> numbers(20000);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i * i);
    // A header that does not fit what is looked at first, too.
    std::string padded = npy_header(npy_literal("<i4", {20000}) + std::string(5000, ' '), 2);
    padded.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
    for (const std::string& member : {npy<int32_t>("<i4", {20000}, numbers), padded}) {
        for (const uint16_t method : {zip_deflate, zip_bzip2, zip_lzma, zip_zstd, zip_xz}) {
            const std::string file =
                Zip{.entries = {packed_entry("a.npy", method, member)}}.bytes();
            EXPECT_EQ(numbers_of<int32_t>(decode(*npz_decoder("a", MiB), file)), numbers) << method;
        }
        const std::string stored = Zip{.entries = {{.name = "a.npy", .data = member}}}.bytes();
        EXPECT_EQ(numbers_of<int32_t>(decode(*npz_decoder("a", MiB), stored)), numbers);
    }
}

// One decompression of a member is for one thread, many are for many: only decode() may need all of
// it.
TEST(Npz, measuring_looks_at_the_header_of_the_member_alone) {
    const std::string member = npy<uint8_t>("|u1", {60000}, std::vector<uint8_t>(60000, 7));
    const auto fault_in_two_steps = [](const Zip& zip) {
        const std::string file = zip.bytes();
        const auto decoder = npz_decoder("a", MiB);
        const ArrayType type = decoder->measure(span_of(file), 0).type;
        EXPECT_EQ(type, (ArrayType{DType::u8, 1, {60000}}));
        std::vector<uint8_t> out(60000);
        DecodeScratch scratch;
        try {
            decoder->decode(span_of(file), 0, type, out, scratch);
            return SHF_OK + 0;
        } catch (const Error& error) {
            return error.code();
        }
    };
    for (const uint16_t method :
         std::initializer_list<uint16_t>{zip_stored, zip_deflate, zip_zstd}) {
        Entry entry = method == zip_stored ? Entry{.name = "a.npy", .data = member}
                                           : packed_entry("a.npy", method, member);
        EXPECT_EQ(fault_in_two_steps({.entries = {entry}}), SHF_OK);
        entry.crc = crc_of("of something else");
        EXPECT_EQ(fault_in_two_steps({.entries = {entry}}), SHF_E_INTEGRITY) << method;
        entry.crc = {};
        if (method == zip_stored) continue;
        entry.packed.pop_back();
        EXPECT_EQ(fault_in_two_steps({.entries = {entry}}), SHF_E_FORMAT) << method;
    }
}

TEST(Npz, members_that_end_in_their_headers) {
    const std::string whole = npy<int32_t>("<i4", {3}, {1, 2, 3});
    for (const uint16_t method : std::initializer_list<uint16_t>{zip_stored, zip_deflate, zip_bzip2,
                                                                 zip_lzma, zip_zstd, zip_xz})
        for (const size_t size : {0U, 1U, 9U, 10U, 60U, 127U, 128U, 139U}) {
            const std::string part = whole.substr(0, size);
            const Entry entry = method == zip_stored ? Entry{.name = "a", .data = part}
                                                     : packed_entry("a", method, part);
            try {
                decode(*npz_decoder("a", MiB), Zip{.entries = {entry}}.bytes());
                ADD_FAILURE() << method << ' ' << size;
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), SHF_E_FORMAT) << method << ' ' << size << error.what();
            }
        }
}

}  // namespace
}  // namespace shf::test
