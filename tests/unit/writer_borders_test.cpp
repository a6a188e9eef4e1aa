// Where a header field becomes too small: exactly there another one takes the value.
#include "core/little_endian.h"
#include "tar/tar_header.h"
#include "zip/zip_records.h"

#include "writer_client.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace shf::test;
using shf::append_central_header;
using shf::append_local_header;
using shf::append_zip_end;
using shf::le16;
using shf::le32;
using shf::le64;
using shf::ZipRecord;

const uint8_t* bytes_at(const std::string& text, size_t at) {
    return reinterpret_cast<const uint8_t*>(text.data()) + at;
}

TEST(ZipBorders, local_headers_have_64_bit_sizes_from_2_to_the_32_minus_1_on) {
    for (const uint64_t size : {uint64_t{0xfffffffe}, uint64_t{0xffffffff}, uint64_t{1} << 33}) {
        const bool large = size >= 0xffffffff;
        std::string header;
        append_local_header(header, {.name = "n", .stored = size, .size = size, .crc = 7});
        ASSERT_EQ(header.size(), 31U + (large ? 20U : 0U));
        EXPECT_EQ(le16(bytes_at(header, 4)), large ? 45 : 20);
        EXPECT_EQ(le32(bytes_at(header, 14)), 7U);
        EXPECT_EQ(le32(bytes_at(header, 18)), large ? 0xffffffff : size);
        EXPECT_EQ(le32(bytes_at(header, 22)), large ? 0xffffffff : size);
        if (!large) continue;
        EXPECT_EQ(le64(bytes_at(header, 35)), size);
        EXPECT_EQ(le64(bytes_at(header, 43)), size);
    }
    // Both have 64 bits when one needs them.
    std::string header;
    append_local_header(header, {.name = "n", .stored = 5, .size = 0xffffffff, .deflated = true});
    EXPECT_EQ(le32(bytes_at(header, 18)), 0xffffffff);
    EXPECT_EQ(le64(bytes_at(header, 35)), 0xffffffffU);
    EXPECT_EQ(le64(bytes_at(header, 43)), 5U);
}

TEST(ZipBorders, central_headers_have_64_bits_for_those_that_need_them) {
    std::string header;
    append_central_header(header, {.name = "n", .stored = 5, .size = 6, .offset = 0xfffffffe});
    EXPECT_EQ(header.size(), 47U);
    EXPECT_EQ(le32(bytes_at(header, 42)), 0xfffffffe);
    header.clear();
    append_central_header(header, {.name = "n", .stored = 5, .size = 6, .offset = 0xffffffff});
    ASSERT_EQ(header.size(), 47U + 12U);
    EXPECT_EQ(le16(bytes_at(header, 49)), 8U);
    EXPECT_EQ(le64(bytes_at(header, 51)), 0xffffffffU);
    EXPECT_EQ(le32(bytes_at(header, 20)), 5U);
    header.clear();
    append_central_header(
        header, {.name = "n", .stored = 5, .size = uint64_t{1} << 32, .offset = uint64_t{1} << 34});
    ASSERT_EQ(header.size(), 47U + 20U);
    EXPECT_EQ(le64(bytes_at(header, 51)), uint64_t{1} << 32);
    EXPECT_EQ(le64(bytes_at(header, 59)), uint64_t{1} << 34);
}

TEST(ZipBorders, the_end_has_64_bits_where_one_number_needs_them) {
    const auto size = [](uint64_t entries, uint64_t bytes, uint64_t offset) {
        std::string end;
        append_zip_end(end, entries, bytes, offset);
        return end.size();
    };
    EXPECT_EQ(size(0xfffe, 0xfffffffe, 0xfffffffe), 22U);
    EXPECT_EQ(size(0xffff, 1, 1), 98U);
    EXPECT_EQ(size(1, 0xffffffff, 1), 98U);
    EXPECT_EQ(size(1, 1, 0xffffffff), 98U);
}

TEST(ZipBorders, as_many_members_as_16_bits_hold_and_one_more) {
    for (const size_t members : {size_t{65534}, size_t{65535}, size_t{65536}}) {
        const TempDirectory folder;
        WriterClient client(folder / "a.zip", {{"zip_method", "store"}});
        for (size_t i = 0; i < members; ++i) client.write("k" + std::to_string(i), {{"x", ""}});
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        shf_archive* archive = nullptr;
        shf_error error;
        ASSERT_EQ(shf_archive_open(&archive, (folder / "a.zip").c_str(), nullptr, &error), SHF_OK)
            << error.message;
        EXPECT_EQ(shf_archive_member_count(archive), members);
        shf_archive_close(archive);
    }
}

TEST(TarBorders, sizes_of_8_gibibytes_have_a_pax_header) {
    constexpr uint64_t largest = (uint64_t{1} << 33) - 1;
    std::string header;
    shf::append_tar_header(header, "n", largest);
    ASSERT_EQ(header.size(), 512U);
    EXPECT_EQ(header.substr(124, 11), "77777777777");
    header.clear();
    shf::append_tar_header(header, "n", largest + 1);
    ASSERT_EQ(header.size(), 3 * 512U);
    EXPECT_EQ(header[156], 'x');
    EXPECT_EQ(header.substr(512, 20), "19 size=8589934592\n" + std::string(1, '\0'));
    EXPECT_EQ(header.size(), shf::tar_header_size("n", largest + 1));
}

TEST(TarBorders, names_have_a_pax_header_where_ustar_has_no_room) {
    const auto blocks = [](const std::string& name) {
        std::string header;
        shf::append_tar_header(header, name, 1);
        EXPECT_EQ(header.size(), shf::tar_header_size(name, 1));
        return header.size() / 512;
    };
    EXPECT_EQ(blocks(std::string(100, 'n')), 1U);
    EXPECT_EQ(blocks(std::string(101, 'n')), 3U);
    EXPECT_EQ(blocks(std::string(155, 'p') + "/" + std::string(100, 'n')), 1U);
    EXPECT_EQ(blocks(std::string(156, 'p') + "/" + std::string(100, 'n')), 3U);
    EXPECT_EQ(blocks(std::string(155, 'p') + "/" + std::string(101, 'n')), 3U);
    EXPECT_EQ(blocks("/" + std::string(100, 'n')), 3U) << "an empty prefix is none";
    // The length of a record counts its own digits.
    for (size_t length = 80; length < 1100; ++length) {
        std::string header;
        const std::string name = "d/" + std::string(length, 'n');
        shf::append_tar_header(header, name, 1);
        if (header.size() == 512) continue;
        const std::string records =
            header.substr(512, std::stoul(header.substr(124, 11), nullptr, 8));
        EXPECT_EQ(std::stoul(records), records.size());
        EXPECT_TRUE(records.ends_with(" path=" + name + "\n"));
    }
}

TEST(TarHeaders, have_the_owner_of_tarp_two_seconds_ago) {
    std::string usual, header;
    shf::append_tar_header(usual, "n.txt", 1);
    EXPECT_EQ(usual.substr(100, 48), std::string("0000644\0000000000\0000000000\000"
                                                 "00000000001\00000000000000\000",
                                                 48));
    shf::append_tar_header(header, "n.txt", 1, shf::tarp_owner(1'700'000'002));
    EXPECT_EQ(header.substr(100, 48), std::string("0000755\0000001750\0000001750\000"
                                                  "00000000001\00014524770400\000",
                                                  48));
    EXPECT_EQ(header.substr(265, 64),
              "bigdata" + std::string(25, '\0') + "bigdata" + std::string(25, '\0'));
    EXPECT_EQ(header.substr(345), usual.substr(345));
    EXPECT_EQ(shf::tarp_owner(1).modified, 0U) << "a clock that was never set";
    // What a pax header belongs to has them, and not the pax header.
    const std::string name(101, 'n');
    header.clear();
    shf::append_tar_header(header, name, 1, shf::tarp_owner(2));
    EXPECT_EQ(header.substr(100, 7), "0000644");
    EXPECT_EQ(header.substr(1124, 7), "0000755");
    EXPECT_EQ(header.size(), shf::tar_header_size(name, 1));
}

// Of files with holes, which are written out. Each takes more than 4 GiB of the disk.
TEST(LargeShards, members_around_4_gibibytes_come_back_in_zip_files) {
    const TempDirectory folder;
    folder.write("large", "start");
    for (const uint64_t size : {uint64_t{0xfffffffe}, uint64_t{0xffffffff}, uint64_t{1} << 32}) {
        std::filesystem::resize_file(folder / "large", size);
        WriterClient client(folder / "a.zip", {{"overwrite", "true"}, {"durable", "false"}});
        ASSERT_EQ(client.write_file("a", "jpg", folder / "large"), SHF_OK) << client.message();
        ASSERT_EQ(client.write("b", {{"txt", "behind"}}), SHF_OK) << client.message();
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        shf_archive* archive = nullptr;
        shf_error error;
        ASSERT_EQ(shf_archive_open(&archive, (folder / "a.zip").c_str(), nullptr, &error), SHF_OK)
            << error.message;
        EXPECT_EQ(shf_archive_member_count(archive), 2U);
        EXPECT_EQ(shf_archive_info(archive, 0, SHF_MEMBER_SIZE), size);
        shf_archive_close(archive);
    }
}

}  // namespace
