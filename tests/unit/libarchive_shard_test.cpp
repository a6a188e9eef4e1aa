// Shards in 7z, cpio, RAR and ISO 9660: rules A1 to A10 of docs/rules.md.
#include "filter_encoders.h"
#include "libarchive_builder.h"
#include "zip_driver.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>

namespace shf::test {
namespace {

std::vector<Packed> samples(int count = 6) {
    std::vector<Packed> members;
    for (int i = 0; i < count; ++i) {
        const std::string key = "dir/" + std::to_string(i);
        members.push_back({key + ".cls", std::to_string(i)});
        members.push_back({key + ".jpg", noise(600 + 300 * static_cast<size_t>(i), 5)});
        members.push_back({key + ".txt", text(150, static_cast<uint32_t>(i))});
    }
    return members;
}

// Samples as those of a tar with the same members, but for their offsets.
bool same_fields(const std::vector<SeenSample>& a, const std::vector<SeenSample>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.key == y.key && x.fields == y.fields;
    });
}

ShardResult read_as_tar(const std::vector<Packed>& members) {
    std::string tar;
    for (const Packed& m : members)
        tar += member({.name = m.name,
                       .type = m.type == AE_IFDIR   ? '5'
                               : m.type == AE_IFLNK ? '2'
                                                    : '0'},
                      m.data);
    return read_shard(tar + end_marker());
}

TEST(LibarchiveShard, samples_are_those_of_a_tar) {
    std::vector<Packed> members = samples();
    members.insert(members.begin(), {.name = "dir", .data = "", .type = AE_IFDIR});
    const ShardResult tar = read_as_tar(members);
    ASSERT_EQ(tar.samples.size(), 6U);
    for (const auto& [name, bytes] : each_archive(members)) {
        for (const bool alone : {false, true}) {
            const ShardResult result = read_shard(bytes, {}, {.alone = alone});
            EXPECT_EQ(result.end.code, SHF_OK) << name << ": " << result.end.text;
            EXPECT_TRUE(same_fields(result.samples, tar.samples)) << name;
        }
        EXPECT_GE(read_shard(bytes).stat(SHF_STAT_DIRECTORIES), 1U) << name;
    }
}

// Wherever the file is cut.
TEST(LibarchiveShard, no_cut_is_silent) {
    for (const auto& [name, bytes] : each_archive(samples())) {
        const auto whole = read_shard(bytes).samples;
        ASSERT_EQ(whole.size(), 6U) << name;
        for (size_t i = 0; i < 50; ++i) {
            const size_t size = bytes.size() * i / 50;
            const ShardResult result = read_shard(std::string_view(bytes).substr(0, size));
            EXPECT_NE(result.end.code, SHF_OK) << name << ' ' << size;
            EXPECT_TRUE(result.end.code == SHF_E_TRUNCATED || size < 32800)
                << name << ' ' << size << ": " << result.end.text;
            EXPECT_TRUE(std::equal(result.samples.begin(), result.samples.end(), whole.begin()))
                << name << ' ' << size;
        }
        // Where members end.
        for (size_t less = 1; less < 40; ++less) {
            const std::string_view cut = std::string_view(bytes).substr(0, bytes.size() - less);
            EXPECT_NE(read_shard(cut).end.code, SHF_OK) << name << ' ' << less;
        }
    }
}

// Where all data have a checksum nothing wrong comes out; elsewhere the right members or an error,
// but for what a header says.
TEST(LibarchiveShard, damage_is_seen_where_the_format_has_checksums) {
    for (const auto& [name, bytes] : each_archive(samples(3))) {
        const bool checked = name.starts_with("7z") || name.starts_with("rar");
        const auto whole = read_shard(bytes).samples;
        size_t silent = 0, seen = 0;
        for (size_t i = 0; i < 400; ++i) {
            std::string bad = bytes;
            // An image is zeros for the greater part.
            const size_t from = name == "iso" ? 32768 : 0;
            const size_t at = from + (bytes.size() - from) * i / 400;
            bad[at] = static_cast<char>(bad[at] ^ (1 << i % 8));
            const ShardResult result = read_shard(bad);
            if (result.end.code != SHF_OK) {
                ++seen;
                EXPECT_NE(result.end.code, SHF_E_INTERNAL) << result.end.text;
                const auto count = static_cast<ptrdiff_t>(result.samples.size());
                if (checked) {
                    EXPECT_LE(result.samples.size(), whole.size());
                    EXPECT_TRUE(same_fields(result.samples, {whole.begin(), whole.begin() + count}))
                        << name << ' ' << at;
                }
                continue;
            }
            ++silent;
            if (!checked) continue;
            EXPECT_TRUE(same_fields(result.samples, whole)) << name << ' ' << at;
        }
        EXPECT_GT(checked ? seen : silent, 200U) << name << ": " << seen << ' ' << silent;
    }
}

TEST(LibarchiveShard, bytes_behind_the_end_are_refused) {
    for (const auto& [name, bytes] : each_archive(samples())) {
        if (name == "iso") continue;  // any may follow an image
        for (const std::string& junk : {std::string("x"), bytes}) {
            const ShardResult refused = read_shard(bytes + junk);
            EXPECT_EQ(refused.end.code, SHF_E_FORMAT) << name << ": " << refused.end.text;
            EXPECT_NE(refused.end.text.find("trailing=ignore"), std::string::npos);
            const ShardResult ignored =
                read_shard(bytes + junk, options_with({{"trailing", "ignore"}}));
            EXPECT_EQ(ignored.end.code, SHF_OK) << name << ": " << ignored.end.text;
            EXPECT_EQ(ignored.samples.size(), 6U);
            EXPECT_EQ(ignored.stat(SHF_STAT_TRAILING), 1U) << name;
        }
        const bool cpio = name == "odc" || name == "newc" || name == "bin";
        EXPECT_EQ(read_shard(bytes + zeros(512)).end.code, cpio ? SHF_OK : SHF_E_FORMAT) << name;
        EXPECT_EQ(read_shard(bytes + zeros(70000)).end.code, SHF_E_FORMAT) << name;
    }
}

// Without setlocale(), which a library must not call.
TEST(LibarchiveShard, names_are_utf8_in_every_locale) {
    const std::vector<Packed> members = {{"straße/日本.txt", "a"}, {"straße/日本.été", "b"}};
    for (const char* format : {"newc", "odc"}) {
        const ShardResult result = read_shard(pack(format, members));
        EXPECT_EQ(listing(result), "straße/日本{txt=a été=b}") << format << result.end.text;
    }
    EXPECT_EQ(listing(read_shard(rar5(members))), "straße/日本{txt=a été=b}");
    // UTF-16 in the file.
    std::string seven = pack("7zip", {{"abc.txt", "a"}}, "7zip:compression=store");
    const std::string name("a\0b\0c\0", 6),
        other("\x3d\xd8\x00\xde\xe9\0", 6);  // one letter is a pair
    const size_t at = seven.find(name);
    ASSERT_NE(at, std::string::npos);
    seven.replace(at, name.size(), other);
    const size_t header = 32 + 1;
    seven.replace(28, 4, lowest_first(crc32(bytes_in(std::string_view(seven).substr(header))), 4));
    seven.replace(8, 4, lowest_first(crc32(bytes_in(std::string_view(seven).substr(12, 20))), 4));
    EXPECT_EQ(listing(read_shard(seven)), "\xf0\x9f\x98\x80é{txt=a}") << read_shard(seven).end.text;
    // Bytes that are no text are a name all the same.
    EXPECT_EQ(listing(read_shard(pack("newc", {{"\xff\xfe.txt", "a"}}))), "\xff\xfe{txt=a}");
}

TEST(LibarchiveShard, links_and_directories_are_counted) {
    const std::vector<Packed> members = {{.name = "d", .data = "", .type = AE_IFDIR},
                                         {"d/a.txt", "text"},
                                         {"d/b.txt", "", AE_IFLNK, "a.txt"},
                                         {"d/c.txt", "more"}};
    for (const char* format : {"7zip", "newc", "odc", "iso9660"}) {
        const ShardResult result = read_shard(pack(format, members));
        EXPECT_EQ(result.end.code, SHF_OK) << format << ": " << result.end.text;
        EXPECT_EQ(listing(result), "d/a{txt=text} d/c{txt=more}") << format;
        EXPECT_EQ(result.stat(SHF_STAT_LINKS), 1U) << format;
        EXPECT_GE(result.stat(SHF_STAT_DIRECTORIES), 1U) << format;
    }
}

// A member of a cpio archive (newc) with `links` names for file number 7.
std::string newc(std::string_view name, std::string_view data, unsigned links) {
    const auto number = [](uint64_t value) {
        char digits[9];
        std::snprintf(digits, sizeof digits, "%08X", static_cast<unsigned>(value));
        return std::string(digits);
    };
    std::string out = "070701" + number(7) + number(0100644) + number(0) + number(0) +
                      number(links) + number(0) + number(data.size()) + number(0) + number(0) +
                      number(0) + number(0) + number(name.size() + 1) + number(0);
    out += std::string(name) + zeros(1);
    out += zeros((4 - out.size() % 4) % 4) + std::string(data);
    return out + zeros((4 - out.size() % 4) % 4);
}

// The last one of the links has the data in this format.
TEST(LibarchiveShard, an_empty_link_of_cpio_is_no_empty_file) {
    const std::string bytes = newc("a.txt", "", 2) + newc("b.txt", "data", 2) +
                              newc("c.txt", "", 1) + newc("TRAILER!!!", "", 1);
    const ShardResult result = read_shard(bytes);
    EXPECT_EQ(listing(result), "b{txt=data} c{txt=}") << result.end.text;
    EXPECT_EQ(result.stat(SHF_STAT_LINKS), 1U);
}

TEST(LibarchiveShard, a_size_beyond_the_file_is_truncated_at_once) {
    std::string bytes = newc("a.txt", "data", 1) + newc("TRAILER!!!", "", 1);
    bytes.replace(54, 8, "7FFFFFFF");
    const ShardResult result = read_shard(bytes);
    EXPECT_EQ(result.end.code, SHF_E_TRUNCATED) << result.end.text;
    EXPECT_LT(result.memory_peak, 1U << 20);
}

TEST(LibarchiveShard, warnings_of_libarchive_are_errors) {
    // It would pass over the bytes between two members.
    const std::string junk = newc("a.txt", "data", 1) + "some bytes  " + newc("b.txt", "data", 1) +
                             newc("TRAILER!!!", "", 1);
    EXPECT_EQ(read_shard(junk).end.code, SHF_E_FORMAT) << read_shard(junk).end.text;
}

TEST(LibarchiveShard, limits_hold) {
    std::vector<Packed> members = {{"a.txt", std::string(50000, 'a')}, {"b.txt", "small"}};
    const Options options = options_with({{"max_member", "10000"}, {"on_error", "skip_sample"}});
    for (const auto& [name, bytes] : each_archive(members)) {
        const ShardResult result = read_shard(bytes, options);
        EXPECT_EQ(listing(result), "b{txt=small}") << name << result.end.text;
        ASSERT_EQ(result.bad_samples.size(), 1U) << name;
        EXPECT_EQ(result.bad_samples[0].code, SHF_E_LIMIT);
        EXPECT_EQ(result.bad_samples[0].offset, no_offset) << "it is no place in the file";
        EXPECT_EQ(read_shard(bytes, options_with({{"max_name", "3"}})).end.code, SHF_E_LIMIT)
            << name;
    }
}

TEST(LibarchiveShard, a_wrong_checksum_is_of_its_sample) {
    const std::vector<Packed> members = {
        {"a.txt", "first"}, {"b.txt", "second"}, {"c.txt", "third"}};
    std::string bytes = pack("7zip", members, "7zip:compression=store");
    bytes[bytes.find("second")] = 'S';
    const ShardResult strict = read_shard(bytes);
    EXPECT_EQ(strict.end.code, SHF_E_INTEGRITY) << strict.end.text;
    EXPECT_EQ(listing(strict), "a{txt=first}");
    const ShardResult result = read_shard(bytes, options_with({{"on_error", "skip_sample"}}));
    EXPECT_EQ(listing(result), "a{txt=first} c{txt=third}") << result.end.text;
    ASSERT_EQ(result.bad_samples.size(), 1U);
    EXPECT_EQ(result.bad_samples[0].code, SHF_E_INTEGRITY);
    EXPECT_NE(result.bad_samples[0].text.find("b.txt"), std::string::npos);
}

TEST(LibarchiveShard, rar_in_parts_or_encrypted_is_unsupported) {
    EXPECT_EQ(read_shard(rar4(samples(1), 0x0001)).end.code, SHF_E_UNSUPPORTED);
    EXPECT_EQ(read_shard(rar4(samples(1), 0x0080)).end.code, SHF_E_UNSUPPORTED);
    EXPECT_EQ(read_shard(rar5(samples(1), 1)).end.code, SHF_E_UNSUPPORTED);
    std::string hidden("Rar!\x1a\x07\x01\0", 8);
    hidden += rar5_block(4, 0, rar5_number(0) + rar5_number(0) + '\x0f' + zeros(16));
    const ShardResult result = read_shard(hidden);
    EXPECT_EQ(result.end.code, SHF_E_UNSUPPORTED) << result.end.text;
    EXPECT_NE(result.end.text.find("encrypted"), std::string::npos);
}

// libarchive takes both for the end.
TEST(LibarchiveShard, rar5_without_its_end_is_cut) {
    const std::string bytes = rar5(samples(2));
    const std::string end = rar5_block(5, 0, rar5_number(0));
    const ShardResult result =
        read_shard(std::string_view(bytes).substr(0, bytes.size() - end.size()));
    EXPECT_EQ(result.end.code, SHF_E_TRUNCATED) << result.end.text;
}

TEST(LibarchiveShard, a_repeated_field_names_both_members) {
    const ShardResult result =
        read_shard(pack("newc", {{"x", "x"}, {"a.txt", "1"}, {"a.cls", "2"}, {"a.txt", "3"}}));
    EXPECT_EQ(result.end.code, SHF_E_AMBIGUOUS);
    EXPECT_NE(result.end.text.find("as member 1 and as member 3"), std::string::npos)
        << result.end.text;
}

TEST(LibarchiveShard, a_stream_from_front_to_back_is_refused) {
    for (const auto& [name, bytes] : each_archive(samples(1))) {
        const ShardResult result = read_shard(bytes, {}, {.size_known = false});
        if (name == "iso") {  // nothing shows it in time
            EXPECT_NE(result.end.code, SHF_OK);
            continue;
        }
        EXPECT_EQ(result.end.code, SHF_E_UNSUPPORTED) << name << ": " << result.end.text;
        EXPECT_NE(result.end.text.find("copy it to a disk"), std::string::npos) << result.end.text;
    }
}

// A dataset that may keep no file open opens it for each read.
TEST(LibarchiveDataset, reads_with_and_without_a_file_that_stays_open) {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const std::string path =
        (std::filesystem::temp_directory_path() / ("shardfeed-" + std::to_string(::getpid())))
            .string();
    for (const auto& [name, bytes] : each_archive(samples())) {
        const auto whole = read_shard(bytes).samples;
        std::ofstream(path, std::ios::binary) << bytes;
        for (const bool stays : {true, false}) {
            rlimit low = before;
            low.rlim_cur = 1;
            if (!stays) ::setrlimit(RLIMIT_NOFILE, &low);
            const DatasetRoom room;
            ::setrlimit(RLIMIT_NOFILE, &before);
            const auto shard = open_dataset_shard(path, 0, room.context());
            for (int turn = 0; turn < 2; ++turn)
                EXPECT_EQ(read_by_number(*shard).samples, whole) << name << stays;
        }
        const DatasetRoom room(options_with({{"max_member", "700"}}));
        const ShardResult result = read_by_number(*open_dataset_shard(path, 0, room.context()));
        EXPECT_LT(result.samples.size(), whole.size());
        ASSERT_FALSE(result.bad_samples.empty()) << name;
        EXPECT_EQ(result.bad_samples[0].code, SHF_E_LIMIT);
        const DatasetRoom small(options_with({{"max_sample", "1000"}}));
        const ShardResult limited = read_by_number(*open_dataset_shard(path, 0, small.context()));
        ASSERT_FALSE(limited.bad_samples.empty()) << name;
        EXPECT_EQ(limited.bad_samples[0].code, SHF_E_LIMIT);
        // The number of a member is no offset.
        EXPECT_NE(
            limited.bad_samples[0].text.find("member \"dir/1.cls\": a sample of 1051 bytes is "
                                             "larger than max_sample=1000"),
            std::string::npos)
            << name << ": " << limited.bad_samples[0].text;
    }
    std::filesystem::remove(path);
}

TEST(LibarchiveShard, an_archive_without_samples_is_empty) {
    for (const char* format : {"newc", "odc", "7zip", "iso9660"}) {
        const std::string bytes = pack(format, {{.name = "d", .data = "", .type = AE_IFDIR}});
        EXPECT_EQ(read_shard(bytes).end.code, SHF_E_FORMAT) << format;
        EXPECT_EQ(read_shard(bytes, options_with({{"allow_empty", "true"}})).end.code, SHF_OK)
            << format << read_shard(bytes, options_with({{"allow_empty", "true"}})).end.text;
    }
}

}  // namespace
}  // namespace shf::test
