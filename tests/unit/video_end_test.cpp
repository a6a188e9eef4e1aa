// What the headers of a video promise, before FFmpeg looks at it.
#include "video/video_end.h"
#include "core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>

namespace {

using shf::VideoFormat;

std::string number(uint64_t value, size_t bytes = 4) {
    std::string text;
    for (size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i));
    return text;
}

std::string box(const std::string& type, const std::string& data) {
    return number(data.size() + 8) + type + data;
}

VideoFormat check(const std::string& file) {
    return shf::check_video_end({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

std::string refusal(const std::string& file) {
    try {
        check(file);
    } catch (const shf::Error& error) {
        return error.fault().cause;
    }
    return "";
}

// A track with so many samples of one size, in chunks of so many.
std::string mp4(uint64_t samples, uint64_t in_chunk, uint64_t chunks, uint64_t edits = 1) {
    std::string places, edited;
    for (uint64_t i = 0; i < chunks; ++i) places += number(8 * i);
    for (uint64_t i = 0; i < edits; ++i) edited += number(1) + number(0) + number(0x10000);
    const std::string tables =
        box("stsz", number(0) + number(1) + number(samples)) +
        box("stsc", number(0) + number(1) + number(1) + number(in_chunk) + number(1)) +
        box("stco", number(0) + number(chunks) + places);
    return box("ftyp", "isom" + number(0)) +
           box("moov", box("trak", box("edts", box("elst", number(0) + number(edits) + edited)) +
                                       box("mdia", box("minf", box("stbl", tables))))) +
           box("mdat", std::string(5000, 'x'));
}

TEST(VideoEnd, an_mp4_ends_where_its_boxes_do) {
    const std::string whole = mp4(100, 10, 10);
    EXPECT_EQ(check(whole), VideoFormat::mp4);
    EXPECT_EQ(check(whole + std::string(5, '\0')), VideoFormat::mp4);
    for (size_t size = whole.size() - 5000; size < whole.size(); size += 7)
        EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
    // The last box may end with the file, and a size have 64 bits.
    EXPECT_EQ(check(whole + number(0) + "free" + "abc"), VideoFormat::mp4);
    EXPECT_EQ(check(whole + number(1) + "free" + number(18, 8) + "ab"), VideoFormat::mp4);
    EXPECT_NE(refusal(whole + number(1) + "free" + number(UINT64_MAX, 8)).find("ends after"),
              std::string::npos);
    EXPECT_NE(refusal(whole + number(7) + "free" + "abc").find("a size of 7"), std::string::npos);
    EXPECT_NE(refusal(box("ftyp", "isom") + box("mdat", "abc")).find("moov"), std::string::npos);
}

TEST(VideoEnd, an_mp4_has_no_more_samples_than_bytes) {
    EXPECT_NE(refusal(mp4(1'000'000, 10, 10)).find("1000000 samples"), std::string::npos);
    EXPECT_NE(refusal(mp4(100, 0xffffffff, 10)).find(" samples in a file"), std::string::npos);
    EXPECT_NE(refusal(mp4(6000, 600, 10, 2000)).find("2000 edits"), std::string::npos);
    EXPECT_EQ(check(mp4(5000, 500, 10, 4)), VideoFormat::mp4);
    const std::string fragment =
        box("moof", box("traf", box("trun", number(0) + number(0x7fffffff) + number(0))));
    EXPECT_NE(refusal(mp4(10, 10, 1) + fragment).find(" samples in a file"), std::string::npos);
    EXPECT_NE(refusal(box("moov", box("cmov", "12345678"))).find("compressed header"),
              std::string::npos);
}

TEST(VideoEnd, matroska_ends_with_its_segment) {
    const std::string head =
        "\x1a\x45\xdf\xa3\x83"
        "abc"
        "\x18\x53\x80\x67";
    EXPECT_EQ(check(head + "\x84"
                           "abcd"),
              VideoFormat::matroska);
    EXPECT_EQ(check(head + "\x84"
                           "abcdefgh"),
              VideoFormat::matroska);
    EXPECT_NE(refusal(head + "\x84"
                             "abc")
                  .find("ends after 3 bytes of 4"),
              std::string::npos);
    EXPECT_EQ(check(head + "\x01\xff\xff\xff\xff\xff\xff\xff"
                           "ab"),
              VideoFormat::matroska);
    EXPECT_NE(refusal(head + "\x01\xff\xff\xff\xff\xff\xff\xfe"
                             "ab"),
              "");
    for (size_t size = 4; size <= head.size(); ++size)
        EXPECT_NE(refusal(head.substr(0, size)), "") << size;
    EXPECT_NE(refusal(head.substr(0, 4) + std::string(1, '\0') + "abc").find("damaged"),
              std::string::npos);
}

std::string little(uint32_t value) {
    const std::string big = number(value);
    return {big.rbegin(), big.rend()};
}

TEST(VideoEnd, avi_ends_with_its_chunks) {
    EXPECT_EQ(check("RIFF" + little(6) + "AVI ab"), VideoFormat::avi);
    EXPECT_NE(refusal("RIFF" + little(7) + "AVI ab").find("ends after 6 bytes of 7"),
              std::string::npos);
    EXPECT_EQ(check("RIFF" + little(0) + "AVI ab"), VideoFormat::avi);
    EXPECT_EQ(check("RIFF" + little(0xffffffff) + "AVI ab"), VideoFormat::avi);
    EXPECT_NE(refusal("RIFF" + little(6) + "AVI abRIFF" + little(9) + "AVIX"), "");
}

// FFmpeg takes memory for what these lists claim.
TEST(VideoEnd, lists_of_an_avi_are_in_the_file) {
    const auto avi = [](uint32_t size, const std::string& more) {
        return "RIFF" + little(0) + "AVI LIST" + little(size) + "INFOIART" + more;
    };
    EXPECT_EQ(check(avi(12, little(0))), VideoFormat::avi);
    EXPECT_EQ(check(avi(12, little(0)) + "LIST" + little(5) + "INFO."), VideoFormat::avi);
    EXPECT_NE(refusal(avi(13, little(0))).find("ends after 12 bytes of 13"), std::string::npos);
    EXPECT_NE(refusal(avi(0x74000000, little(0x70000000))).find("\"INFO\""), std::string::npos);
    EXPECT_NE(refusal(avi(0xffffffff, little(0x70000000))).find("\"INFO\""), std::string::npos);
    EXPECT_NE(refusal(avi(3, little(0x70000000))).find("a size of 3 bytes"), std::string::npos);
    EXPECT_NE(refusal(avi(12, little(0)) + "...LIST" + little(6) + "INFO."), "");
    EXPECT_EQ(check("RIFF" + little(0) + "AVI INFO and LIST INFO"), VideoFormat::avi);
}

TEST(VideoEnd, other_formats_are_unsupported) {
    EXPECT_NE(refusal("").find("0 bytes"), std::string::npos);
    for (const char* file : {"FLV\x01", "abc", "\x47@\x11\x10", "RIFF____WAVE"})
        EXPECT_NE(refusal(file).find("no MP4, Matroska, WebM or AVI"), std::string::npos);
}

}  // namespace
