// Random files written by libzip, and files of ours read by libzip: both see the same names and
// bytes. libzip is the oracle of tests only.
#include "dataset/archive.h"
#include "zip_builder.h"
#include "zip_driver.h"
#include "zip_encoders.h"

#include <zip.h>

#include <iostream>
#include <random>

namespace shf::test {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;  // name and bytes, in order

class Generator {
  public:
    explicit Generator(uint32_t seed) : random_(seed) {}

    size_t below(size_t bound) { return random_() % bound; }
    bool flip() { return below(2) == 0; }

    // libzip takes no NUL and no empty name; and none twice, hence the number.
    std::string name(size_t number) {
        std::string out;
        for (size_t i = below(below(10) == 0 ? 300 : 20); i > 0; --i)
            out += static_cast<char>(' ' + below(95));
        return out + std::to_string(number) + (below(3) == 0 ? ".\xc3\xbc" : ".bin");
    }
    std::string data() {
        const size_t size = below(below(10) == 0 ? 200000 : 3000);
        const auto seed = static_cast<uint32_t>(random_());
        switch (below(4)) {
            case 0: return {};
            case 1: return noise(size, seed);
            case 2: return std::string(size, static_cast<char>(seed));
            default: return text(size, seed);
        }
    }
    Files files() {
        Files out;
        for (size_t i = below(12) + 1; i > 0; --i) out.emplace_back(name(i), data());
        return out;
    }
    template <size_t n>
    uint16_t one_of(const uint16_t (&methods)[n]) {
        return methods[below(n)];
    }

  private:
    std::mt19937 random_;
};

// The methods that this libzip can write.
std::vector<uint16_t> methods_of_libzip() {
    std::vector<uint16_t> methods;
    for (const uint16_t method : {zip_stored, zip_deflate, zip_bzip2, zip_lzma, zip_zstd, zip_xz})
        if (zip_compression_method_supported(method, 1) != 0) methods.push_back(method);
    return methods;
}

std::string written_by_libzip(Generator& random, const Files& files,
                              const std::vector<uint16_t>& methods) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
    EXPECT_NE(target, nullptr);
    zip_t* archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
    EXPECT_NE(archive, nullptr) << zip_error_strerror(&error);
    zip_source_keep(target);
    for (const auto& [name, data] : files) {
        zip_source_t* source = zip_source_buffer(archive, data.data(), data.size(), 0);
        const zip_int64_t index = zip_file_add(archive, name.c_str(), source,
                                               random.flip() ? ZIP_FL_ENC_UTF_8 : ZIP_FL_ENC_GUESS);
        EXPECT_GE(index, 0) << zip_strerror(archive);
        const auto at = static_cast<zip_uint64_t>(index);
        EXPECT_EQ(zip_set_file_compression(archive, at, methods[random.below(methods.size())],
                                           static_cast<zip_uint32_t>(random.below(9) + 1)),
                  0);
        if (random.below(4) == 0)
            zip_file_set_comment(archive, at, "a comment", 9, ZIP_FL_ENC_UTF_8);
        if (random.below(4) == 0)
            zip_file_extra_field_set(archive, at, 0x9999, ZIP_EXTRA_FIELD_NEW,
                                     reinterpret_cast<const zip_uint8_t*>("any bytes"), 9,
                                     ZIP_FL_CENTRAL | ZIP_FL_LOCAL);
    }
    if (random.flip()) zip_set_archive_comment(archive, "comment of the file", 19);
    if (random.flip()) {
        EXPECT_GE(zip_dir_add(archive, "a directory", ZIP_FL_ENC_UTF_8), 0);
    }
    EXPECT_EQ(zip_close(archive), 0) << zip_strerror(archive);
    std::string bytes;
    EXPECT_EQ(zip_source_open(target), 0);
    zip_source_seek(target, 0, SEEK_END);
    bytes.resize(static_cast<size_t>(zip_source_tell(target)));
    zip_source_seek(target, 0, SEEK_SET);
    EXPECT_EQ(zip_source_read(target, bytes.data(), bytes.size()),
              static_cast<zip_int64_t>(bytes.size()));
    zip_source_close(target);
    zip_source_free(target);
    return bytes;
}

// Nothing when libzip does not open it, with its strictest checks.
std::optional<Files> read_by_libzip(const std::string& bytes) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (!archive) {
        zip_source_free(source);
        return std::nullopt;
    }
    std::optional<Files> files(std::in_place);
    const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(archive, 0));
    for (zip_uint64_t i = 0; i < count; ++i) {
        zip_stat_t stat;
        zip_stat_index(archive, i, ZIP_FL_ENC_RAW, &stat);
        zip_file_t* file = zip_fopen_index(archive, i, 0);
        std::string data(stat.size, '\0');
        if (!file ||
            zip_fread(file, data.data(), data.size()) != static_cast<zip_int64_t>(data.size())) {
            files.reset();
            if (file) zip_fclose(file);
            break;
        }
        files->emplace_back(stat.name, data);
        zip_fclose(file);
    }
    zip_discard(archive);
    return files;
}

Files read_by_us(const std::string& bytes, const Options& options = {}) {
    const ZipListing listing = list_zip(bytes, options);
    EXPECT_TRUE(listing.all_read()) << testing::PrintToString(listing);
    Files files;
    for (const ZipMember& member : listing.members) files.emplace_back(member.name, member.bytes);
    return files;
}

constexpr uint32_t first_seed = 20261001;

TEST(ZipDifferential, files_of_libzip) {
    const std::vector<uint16_t> methods = methods_of_libzip();
    ASSERT_GE(methods.size(), 3U);
    constexpr uint32_t archives = 200;
    std::cout << "libzip " << zip_libzip_version() << ", " << methods.size() << " methods, seeds "
              << first_seed << " to " << first_seed + archives - 1 << '\n';
    for (uint32_t seed = first_seed; seed < first_seed + archives; ++seed) {
        Generator random(seed);
        const Files files = random.files();
        const std::string bytes = written_by_libzip(random, files, methods);
        Files ours = read_by_us(bytes);
        if (ours.size() == files.size() + 1) {
            EXPECT_EQ(ours.back(), (std::pair<std::string, std::string>("a directory/", "")));
            ours.pop_back();
        }
        ASSERT_TRUE(ours == files) << "seed " << seed;
        const Archive archive(span_of(bytes), Options());
        for (const auto& [name, data] : files) {
            const size_t position = archive.find(name);
            ASSERT_EQ(archive.members().info(position).size, data.size()) << "seed " << seed;
        }
    }
}

TEST(ZipDifferential, files_of_ours) {
    const std::vector<uint16_t> methods = methods_of_libzip();
    constexpr uint32_t archives = 200;
    for (uint32_t seed = first_seed; seed < first_seed + archives; ++seed) {
        Generator random(seed);
        Zip zip;
        for (auto& [name, data] : random.files()) {
            Entry entry = packed_entry(name, methods[random.below(methods.size())], data);
            entry.zip64 = random.below(3) == 0;
            entry.descriptor = random.below(3) == 0;
            if (entry.descriptor) {
                const bool magic = random.flip();
                entry.tail = [magic](Descriptor& d) { d.magic = magic; };
            }
            if (random.below(4) == 0)
                entry.local = [](LocalHeader& h) { h.extra += extra(0x9999, "local bytes"); };
            if (random.below(4) == 0)
                entry.central = [](CentralHeader& h) { h.comment = "of this entry"; };
            zip.entries.push_back(entry);
        }
        if (random.flip()) zip.comment = "comment of the file";
        zip.zip64 = random.below(3) == 0;
        for (size_t i = zip.entries.size(); i-- > 0 && seed % 2 == 0;) zip.order.push_back(i);
        const std::string bytes = zip.bytes();
        const std::optional<Files> theirs = read_by_libzip(bytes);
        ASSERT_TRUE(theirs) << "seed " << seed;
        ASSERT_TRUE(read_by_us(bytes) == *theirs) << "seed " << seed;
    }
}

// One byte of such a file is changed: where both read all of it, both read the same.
TEST(ZipDifferential, damaged_files) {
    size_t both = 0, tried = 0;
    for (uint32_t seed = first_seed; seed < first_seed + 60; ++seed) {
        Generator random(seed);
        Files files;
        for (size_t i = 0; i < 3; ++i) files.emplace_back(random.name(i), text(random.below(200)));
        const std::string bytes = written_by_libzip(random, files, {zip_stored, zip_deflate});
        for (size_t i = 0; i < 300; ++i) {
            std::string bad = bytes;
            const size_t at = random.below(bad.size());
            bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1U << random.below(8)));
            ++tried;
            const ZipListing listing = list_zip(bad);
            if (!listing.all_read()) continue;
            Files ours;
            for (const ZipMember& m : listing.members) ours.emplace_back(m.name, m.bytes);
            // libzip refuses some of what means nothing to us.
            const std::optional<Files> theirs = read_by_libzip(bad);
            if (!theirs) continue;
            ++both;
            ASSERT_TRUE(ours == *theirs) << "seed " << seed << ", byte " << at;
        }
    }
    std::cout << both << " of " << tried << " damaged files were read by both\n";
    EXPECT_GT(both, 100U);
}

}  // namespace
}  // namespace shf::test
