// The filter against libarchive on valid inputs: the same bytes.
#include "filter_encoders.h"
#include "filter_outcome.h"

#include <archive.h>
#include <archive_entry.h>

namespace shf::test {
namespace {

std::string libarchive(std::string_view input) {
    struct Free {
        void operator()(archive* a) const { archive_read_free(a); }
    };
    const std::unique_ptr<archive, Free> a(archive_read_new());
    archive_read_support_filter_all(a.get());
    archive_read_support_format_raw(a.get());
    EXPECT_EQ(archive_read_open_memory(a.get(), input.data(), input.size()), ARCHIVE_OK);
    archive_entry* entry = nullptr;
    EXPECT_EQ(archive_read_next_header(a.get(), &entry), ARCHIVE_OK);
    std::string out, buffer(100000, '\0');
    for (la_ssize_t count = 0;
         (count = archive_read_data(a.get(), buffer.data(), buffer.size())) != 0;) {
        EXPECT_GT(count, 0) << archive_error_string(a.get());
        if (count < 0) break;
        out.append(buffer, 0, static_cast<size_t>(count));
    }
    return out;
}

TEST(FilterOracle, libarchive_reads_the_same) {
    for (const size_t size : {1U, 511U, 65536U, 1000001U})
        for (const std::string& data : {text(size, 5), noise(size, 5)})
            for (const char* codec : codecs) {
                const std::string one = compress(codec, data);
                const std::string two = one + compress(codec, text(3000)) + one;
                EXPECT_TRUE(filter(one).bytes == libarchive(one)) << codec << ' ' << size;
                EXPECT_TRUE(filter(two).bytes == libarchive(two)) << codec << ' ' << size;
            }
}

TEST(FilterOracle, libarchive_reads_other_shapes_the_same) {
    const std::string data = text(700000) + noise(300000);
    for (int level = 0; level <= 9; ++level) {
        const std::string input = gzip(data, level);
        EXPECT_TRUE(filter(input).bytes == libarchive(input)) << level;
    }
    for (const int level : {-5, 1, 12, 19})
        for (const bool content_size : {false, true}) {
            const std::string input =
                zstd(data, {.level = level, .checksum = false, .content_size = content_size});
            EXPECT_TRUE(filter(input).bytes == libarchive(input)) << level;
        }
    for (const LZ4F_blockSizeID_t block : {LZ4F_max64KB, LZ4F_max256KB, LZ4F_max1MB, LZ4F_max4MB})
        for (const bool linked : {false, true}) {
            const std::string input =
                lz4(data, {.linked = linked, .block_checks = linked, .block = block});
            EXPECT_TRUE(filter(input).bytes == libarchive(input)) << block;
        }
    for (const uint32_t preset : {0U, 6U}) {
        const std::string input = xz(data, LZMA_CHECK_SHA256, preset);
        EXPECT_TRUE(filter(input).bytes == libarchive(input)) << preset;
    }
    const std::string input = bzip2(data, 9);
    EXPECT_TRUE(filter(input).bytes == libarchive(input));
}

}  // namespace
}  // namespace shf::test
