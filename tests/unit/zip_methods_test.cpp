// The compression methods of ZIP, each written by its library: the right bytes or the right class
// of error, and never wrong bytes.
#include "zip_builder.h"
#include "zip_driver.h"
#include "zip_encoders.h"

namespace shf::test {
namespace {

constexpr uint16_t packed_methods[] = {zip_deflate, zip_bzip2, zip_lzma, zip_zstd, zip_xz};

// What reading the only entry gives: "right", or the class of the error.
std::string read_entry(const Entry& entry, const Options& options = {}) {
    const ZipListing listing = list_zip(Zip{.entries = {entry}}.bytes(), options);
    EXPECT_EQ(listing.members.size(), 1U) << listing.fault.text;
    if (listing.members.size() != 1) return {};
    const ZipMember& member = listing.members[0];
    if (member.code != SHF_OK) return shf_error_name(member.code);
    return member.bytes == entry.data ? "right" : "WRONG BYTES";
}

// An entry whose packed bytes are given; the CRC is that of `data`.
std::string read_packed(uint16_t method, std::string_view data, std::string packed,
                        uint16_t flags = 0, const Options& options = {}) {
    return read_entry({.name = "e",
                       .data = std::string(data),
                       .method = method,
                       .packed = std::move(packed),
                       .flags = flags},
                      options);
}

// Data that compressors like and dislike.
std::vector<std::string> samples() {
    std::vector<std::string> all = {"", "x", "hello, hello", std::string(100000, 'a'),
                                    std::string(70000, '\0') + "end"};
    all.push_back(noise(100000));
    for (const size_t size : {100U, 65535U, 65536U, 65537U, 300000U}) all.push_back(text(size));
    all.push_back(text(5000) + noise(5000) + std::string(5000, 'z'));
    return all;
}

TEST(ZipMethods, right_bytes) {
    for (const std::string& data : samples()) {
        EXPECT_EQ(read_entry({.name = "e", .data = data}), "right") << data.size();
        for (const uint16_t method : packed_methods)
            EXPECT_EQ(read_entry(packed_entry("e", method, data)), "right")
                << method << ' ' << data.size();
    }
}

TEST(ZipMethods, other_settings_of_the_writers) {
    for (const std::string& data : samples()) {
        for (const int level : {1, 9, 12})
            EXPECT_EQ(read_packed(zip_deflate, data, deflate(data, level)), "right") << level;
        EXPECT_EQ(read_packed(zip_bzip2, data, bzip2(data, 9)), "right");
        for (const lzma_check check : {LZMA_CHECK_NONE, LZMA_CHECK_CRC32, LZMA_CHECK_SHA256})
            EXPECT_EQ(read_packed(zip_xz, data, xz(data, check)), "right") << check;
        for (const bool content_size : {true, false})
            for (const bool checksum : {true, false})
                EXPECT_EQ(read_packed(zip_zstd, data,
                                      zstd(data, {.level = 19,
                                                  .checksum = checksum,
                                                  .content_size = content_size})),
                          "right");
    }
}

TEST(ZipMethods, lzma_with_and_without_end_mark) {
    for (const std::string& data : samples())
        for (const uint32_t preset : {0U, 6U})
            for (const bool mark : {true, false}) {
                const std::string packed = zip_lzma_data(data, mark, 1 << 20, preset);
                EXPECT_EQ(read_packed(zip_lzma, data, packed, mark ? lzma_end_bit : 0), "right")
                    << data.size() << ' ' << mark;
                // The flag promises a mark. One that is there without a promise does no harm.
                EXPECT_EQ(read_packed(zip_lzma, data, packed, mark ? 0 : lzma_end_bit),
                          mark ? "right" : "FORMAT")
                    << data.size() << ' ' << mark;
            }
}

TEST(ZipMethods, too_short_and_too_long) {
    const std::string data = text(10000), less = data.substr(0, 9999), more = data + "x";
    for (const uint16_t method : packed_methods) {
        const uint16_t flags = method == zip_lzma ? lzma_end_bit : 0;
        EXPECT_EQ(read_packed(method, less, pack(method, data), flags), "FORMAT") << method;
        EXPECT_EQ(read_packed(method, more, pack(method, data), flags), "FORMAT") << method;
        EXPECT_EQ(read_packed(method, "", pack(method, data), flags), "FORMAT") << method;
        EXPECT_EQ(read_packed(method, data, pack(method, ""), flags), "FORMAT") << method;
        EXPECT_EQ(read_packed(method, data, "", flags), "FORMAT") << method;
        EXPECT_EQ(read_packed(method, "", "", flags), "FORMAT") << method;
    }
    // Without an end mark the declared size is where it ends: what is left shows.
    EXPECT_EQ(read_packed(zip_lzma, less, zip_lzma_data(data, false)), "FORMAT");
    EXPECT_EQ(read_packed(zip_lzma, more, zip_lzma_data(data, false)), "FORMAT");
    EXPECT_EQ(read_packed(zip_lzma, "", zip_lzma_data(data, false)), "FORMAT");
}

TEST(ZipMethods, bytes_after_the_end) {
    const std::string data = text(10000);
    for (const uint16_t method : packed_methods) {
        const uint16_t flags = method == zip_lzma ? lzma_end_bit : 0;
        const std::string packed = pack(method, data);
        for (const std::string& junk : {"\0"s, "x"s, std::string(4, '\0'), packed, noise(100000)})
            EXPECT_EQ(read_packed(method, data, packed + junk, flags), "FORMAT")
                << method << ' ' << junk.size();
    }
    for (const std::string& junk : {"\0"s, "x"s, noise(100000)})
        EXPECT_EQ(read_packed(zip_lzma, data, zip_lzma_data(data, false) + junk), "FORMAT")
            << junk.size();
}

TEST(ZipMethods, every_cut) {
    const std::string data = text(3000) + noise(100);
    for (const uint16_t method : packed_methods) {
        const std::string packed = pack(method, data);
        for (size_t size = 0; size < packed.size(); ++size)
            ASSERT_EQ(read_packed(method, data, packed.substr(0, size),
                                  method == zip_lzma ? lzma_end_bit : 0),
                      "FORMAT")
                << method << ' ' << size;
    }
    const std::string packed = zip_lzma_data(data, false);
    for (size_t size = 0; size < packed.size(); ++size)
        ASSERT_EQ(read_packed(zip_lzma, data, packed.substr(0, size)), "FORMAT") << size;
}

// Every byte of the packed data, changed in ten ways: an error, or the same bytes.
TEST(ZipMethods, every_damaged_byte) {
    const std::string data = text(1500) + noise(50);
    size_t harmless = 0;
    const auto damage = [&](uint16_t method, const std::string& packed, uint16_t flags) {
        for (size_t i = 0; i < packed.size(); ++i)
            for (const unsigned change : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U, 0x55U}) {
                std::string bad = packed;
                bad[i] = static_cast<char>(bad[i] ^ static_cast<char>(change));
                const std::string result = read_packed(method, data, bad, flags);
                if (result == "right") {
                    ++harmless;
                    continue;
                }
                ASSERT_TRUE(result == "FORMAT" || result == "INTEGRITY" || result == "LIMIT" ||
                            result == "UNSUPPORTED")
                    << method << ' ' << i << ' ' << change << ": " << result;
            }
    };
    for (const uint16_t method : packed_methods)
        damage(method, pack(method, data), method == zip_lzma ? lzma_end_bit : 0);
    damage(zip_lzma, zip_lzma_data(data, false), 0);
    damage(zip_zstd, zstd(data, {.checksum = false}), 0);
    // Version and dictionary size of LZMA, and bits that decoders do not look at.
    EXPECT_GT(harmless, 10U);
    EXPECT_LT(harmless, 300U);
}

TEST(ZipMethods, wrong_crc_is_integrity) {
    for (const uint16_t method : packed_methods)
        for (const std::string& data : {""s, "data"s, text(70000)}) {
            Entry entry = packed_entry("e", method, data);
            entry.crc = entry.checksum() ^ 1;
            EXPECT_EQ(read_entry(entry), "INTEGRITY") << method;
        }
}

TEST(ZipMethods, lzma_header) {
    const std::string data = text(1000), good = zip_lzma_data(data, true);
    const auto with = [&](size_t at, std::string_view bytes) {
        std::string changed = good;
        changed.replace(at, bytes.size(), bytes);
        return read_packed(zip_lzma, data, changed, lzma_end_bit);
    };
    EXPECT_EQ(with(0, "\x10\x02"), "right");  // the version of the writer
    EXPECT_EQ(with(2, "\4"), "FORMAT");
    EXPECT_EQ(with(2, "\6"), "FORMAT");
    EXPECT_EQ(with(3, "\1"), "FORMAT");
    EXPECT_EQ(with(4, "\xe1"), "FORMAT");  // lc, lp and pb beyond what there is
    for (size_t size = 0; size < 9; ++size)
        EXPECT_EQ(read_packed(zip_lzma, data, good.substr(0, size), lzma_end_bit), "FORMAT")
            << size;
}

TEST(ZipMethods, max_window) {
    const std::string data = text((1 << 20) + 100000);
    const Options small = options_with({{"max_window", "1MiB"}});
    const std::string lzma = zip_lzma_data(data, true, 2 << 20, 1);
    EXPECT_EQ(read_packed(zip_lzma, data, lzma, lzma_end_bit, small), "LIMIT");
    EXPECT_EQ(read_packed(zip_lzma, data, lzma, lzma_end_bit), "right");
    EXPECT_EQ(
        read_packed(zip_lzma, data, zip_lzma_data(data, true, 1 << 20, 1), lzma_end_bit, small),
        "right");
    const std::string frame = zstd(data, {.window_log = 21});
    EXPECT_EQ(read_packed(zip_zstd, data, frame, 0, small), "LIMIT");
    EXPECT_EQ(read_packed(zip_zstd, data, frame), "right");
    EXPECT_EQ(read_packed(zip_xz, data, xz(data, LZMA_CHECK_CRC64, 6), 0, small), "LIMIT");
    EXPECT_EQ(read_packed(zip_xz, data, xz(data, LZMA_CHECK_CRC64, 0), 0, small), "right");
    // What no decoder gets memory for.
    EXPECT_EQ(read_packed(zip_lzma, data, zip_lzma_data(data, true).replace(5, 4, le32(sentinel32)),
                          lzma_end_bit),
              "LIMIT");
}

TEST(ZipMethods, one_frame_only) {
    const std::string a = text(1000), b = noise(500);
    for (const uint16_t method : {zip_bzip2, zip_zstd, zip_xz})
        EXPECT_EQ(read_packed(method, a + b, pack(method, a) + pack(method, b)), "FORMAT")
            << method;
    EXPECT_EQ(read_packed(zip_zstd, a, skippable("s") + zstd(a)), "UNSUPPORTED");
    EXPECT_EQ(read_packed(zip_zstd, a, zstd(a, {.dictionary = text(5000, 2)})), "FORMAT")
        << "raw content as dictionary has no number and, here, no use";
}

// The scratch of a thread is used again by other methods and sizes.
TEST(ZipMethods, many_in_one_file) {
    Zip zip;
    std::vector<std::string> expected;
    for (const size_t size : {10U, 1000000U, 70000U, 0U, 300U})
        for (const uint16_t method :
             {zip_stored, zip_deflate, zip_bzip2, zip_lzma, zip_zstd, zip_xz}) {
            expected.push_back(text(size, static_cast<uint32_t>(expected.size())));
            zip.entries.push_back(
                packed_entry(std::to_string(expected.size()), method, expected.back()));
        }
    const ZipListing listing = list_zip(zip.bytes());
    ASSERT_EQ(listing.members.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(listing.members[i].bytes == expected[i]) << i << listing.members[i].text;
}

}  // namespace
}  // namespace shf::test
