// A ZIP file as a shard, read by one reader: the samples of the tar with the same members, in the
// order of the file, and what one bad entry does to the others.
#include "shard_expect.h"
#include "zip_builder.h"
#include "zip_encoders.h"

#include <random>

namespace shf::test {
namespace {

const Options skipping = options_with({{"on_error", "skip_sample"}});
const Options skipping_shards = options_with({{"on_error", "skip_shard"}});

using Files = std::vector<std::pair<std::string, std::string>>;

constexpr uint16_t all_methods[] = {zip_stored, zip_deflate, zip_bzip2, zip_lzma, zip_zstd, zip_xz};

// Samples of one to four fields, and members that belong to none.
Files random_files(uint32_t seed, size_t samples) {
    std::mt19937 random(seed);
    Files files;
    for (size_t i = 0; i < samples; ++i) {
        const std::string key = "dir/" + std::to_string(i);
        if (random() % 5 == 0) files.emplace_back("README", text(random() % 3000));
        for (size_t f = 0, fields = random() % 4 + 1; f < fields; ++f)
            files.emplace_back(key + ".F" + std::to_string(f),
                               text(random() % (random() % 8 == 0 ? 100000 : 3000),
                                    static_cast<uint32_t>(random())));
    }
    return files;
}

// As the engine takes a tar apart: the plainest one there is.
std::string tar_of(const Files& files) {
    const auto octal = [](uint64_t value, int width) {
        char digits[24];
        std::snprintf(digits, sizeof digits, "%0*llo", width,
                      static_cast<unsigned long long>(value));
        return std::string(digits);
    };
    std::string out;
    for (const auto& [name, data] : files) {
        std::string block(512, '\0');
        block.replace(0, name.size(), name);
        block.replace(124, 11, octal(data.size(), 11));
        block.replace(148, 8, "        ");
        block[156] = '0';
        block.replace(257, 8, "ustar\00000"s);
        unsigned sum = 0;
        for (const char c : block) sum += static_cast<unsigned char>(c);
        block.replace(148, 7, octal(sum, 6) + '\0');
        out += block + data + std::string((512 - data.size() % 512) % 512, '\0');
    }
    return out + std::string(1024, '\0');
}

Zip zip_of(const Files& files, const std::vector<uint16_t>& methods) {
    Zip zip;
    for (const auto& [name, data] : files)
        zip.entries.push_back(
            packed_entry(name, methods[zip.entries.size() % methods.size()], data));
    return zip;
}

// Keys and fields; offsets are those of another file.
std::vector<std::pair<std::string, Files>> contents(const ShardResult& result) {
    std::vector<std::pair<std::string, Files>> all;
    for (const SeenSample& sample : result.samples) all.emplace_back(sample.key, sample.fields);
    return all;
}

TEST(ZipShard, samples_of_the_tar) {
    for (uint32_t seed = 1; seed <= 12; ++seed) {
        const Files files = random_files(seed, 40);
        const ShardResult tar = read_shard(tar_of(files));
        ASSERT_EQ(tar.end.code, SHF_OK) << tar.end.text;
        std::vector<uint16_t> methods(std::begin(all_methods), std::end(all_methods));
        if (seed % 3 == 0) methods = {zip_stored};
        if (seed % 3 == 1) methods = {zip_deflate};
        const std::string bytes = zip_of(files, methods).bytes();
        for (const bool alone : {false, true}) {
            const ShardResult zip = read_shard(bytes, {}, {.alone = alone});
            ASSERT_EQ(zip.end.code, SHF_OK) << zip.end.text;
            ASSERT_TRUE(contents(zip) == contents(tar)) << "seed " << seed;
            EXPECT_EQ(zip.stat(SHF_STAT_IGNORED_MEMBERS), tar.stat(SHF_STAT_IGNORED_MEMBERS));
        }
    }
}

TEST(ZipShard, order_of_the_file) {
    Zip zip = zip_of(random_files(3, 40), {zip_stored, zip_deflate});
    const ShardResult sorted = read_shard(zip.bytes());
    for (size_t i = 0; i < zip.entries.size(); ++i) zip.order.push_back(i);
    std::shuffle(zip.order.begin(), zip.order.end(), std::mt19937(7));
    const ShardResult shuffled = read_shard(zip.bytes());
    ASSERT_EQ(shuffled.end.code, SHF_OK) << shuffled.end.text;
    EXPECT_TRUE(shuffled.samples == sorted.samples);  // offsets too
    for (size_t i = 1; i < sorted.samples.size(); ++i)
        EXPECT_LT(sorted.samples[i - 1].offset, sorted.samples[i].offset);
}

TEST(ZipShard, links_and_directories_are_counted) {
    Zip zip{.entries = {{.name = "d/", .data = ""},
                        {.name = "d/a.x", .data = "1"},
                        {.name = "d/l.x", .data = "a.x"},
                        {.name = "d/b.x", .data = "2"}}};
    zip.entries[2].central = [](CentralHeader& h) { h.attributes = 0120777U << 16; };
    const ShardResult result = read_shard(zip.bytes());
    EXPECT_EQ(listing(result), "d/a{x=1} d/b{x=2}") << result.end.text;
    EXPECT_EQ(result.stat(SHF_STAT_DIRECTORIES), 1U);
    EXPECT_EQ(result.stat(SHF_STAT_LINKS), 1U);
    zip.entries.erase(zip.entries.begin() + 1);
    zip.entries.pop_back();
    EXPECT_EQ(read_shard(zip.bytes()).end.code, SHF_E_FORMAT);
    EXPECT_EQ(read_shard(zip.bytes(), options_with({{"allow_empty", "true"}})).end.code, SHF_OK);
    EXPECT_EQ(read_shard(Zip().bytes()).end.code, SHF_E_FORMAT) << "an empty shard";
}

// ---- One bad entry ----------------------------------------------------------------------------

// Three samples of two fields; what is wrong is wrong with "b.y".
Zip three() {
    return zip_of(
        {{"a.x", "a1"}, {"a.y", "a2"}, {"b.x", "b1"}, {"b.y", "b2"}, {"c.x", "c1"}, {"c.y", "c2"}},
        {zip_stored, zip_deflate});
}

struct BadEntry {
    int32_t code;
    std::function<void(Entry&)> make;
};

const BadEntry bad_entries[] = {
    {SHF_E_INTEGRITY, [](Entry& e) { e.crc = 7; }},
    {SHF_E_FORMAT, [](Entry& e) { e.packed[0] = '\xff'; }},
    {SHF_E_FORMAT, [](Entry& e) { e.packed += "junk"; }},
    {SHF_E_AMBIGUOUS, [](Entry& e) { e.local = [](LocalHeader& h) { h.crc = 9; }; }},
    {SHF_E_AMBIGUOUS, [](Entry& e) { e.local = [](LocalHeader& h) { h.name = "b.z"; }; }},
    {SHF_E_UNSUPPORTED, [](Entry& e) { e.method = 9; }},
    {SHF_E_UNSUPPORTED, [](Entry& e) { e.flags = 1; }},
    {SHF_E_FORMAT, [](Entry& e) { e.central = [](CentralHeader& h) { h.extra = "\1"; }; }},
    {SHF_E_FORMAT, [](Entry& e) { e.local = [](LocalHeader& h) { h.magic = 0; }; }},
    {SHF_E_LIMIT,
     [](Entry& e) {
         const auto huge = [](auto& h) { h.size = 70000000; };
         e = packed_entry(e.name, zip_zstd, e.data);
         e.local = huge;
         e.central = huge;
     }},
    {SHF_E_AMBIGUOUS, [](Entry& e) { e.name = "b.X"; }},  // the field of "b.x" once more
};

TEST(ZipShard, one_bad_entry_harms_no_other) {
    for (const BadEntry& bad : bad_entries)
        for (const bool alone : {false, true}) {
            Zip zip = three();
            bad.make(zip.entries[3]);
            const std::string bytes = zip.bytes();
            const ShardResult raised = read_shard(bytes, {}, {.alone = alone});
            EXPECT_EQ(raised.end.code, bad.code) << raised.end.text;
            EXPECT_EQ(listing(raised), "a{x=a1 y=a2}");
            EXPECT_NE(raised.end.text.find("member \"b."), std::string::npos) << raised.end.text;
            EXPECT_NE(raised.end.offset, no_offset);
            const ShardResult skipped = read_shard(bytes, skipping, {.alone = alone});
            EXPECT_EQ(skipped.end.code, SHF_OK) << skipped.end.text;
            EXPECT_EQ(listing(skipped), "a{x=a1 y=a2} c{x=c1 y=c2}");
            ASSERT_EQ(skipped.bad_samples.size(), 1U);
            EXPECT_EQ(skipped.bad_samples[0].code, bad.code) << skipped.bad_samples[0].text;
            EXPECT_EQ(skipped.bad_samples[0].after, 1U);
            const ShardResult dropped = read_shard(bytes, skipping_shards, {.alone = alone});
            EXPECT_EQ(dropped.end.code, bad.code);
            EXPECT_EQ(listing(dropped), "a{x=a1 y=a2}");
        }
}

TEST(ZipShard, bad_entries_that_are_not_read_do_not_matter) {
    Zip zip = three();
    zip.entries.insert(zip.entries.begin() + 2, Entry{.name = "README", .data = "text", .crc = 1});
    const ShardResult result = read_shard(zip.bytes());
    EXPECT_EQ(listing(result), "a{x=a1 y=a2} b{x=b1 y=b2} c{x=c1 y=c2}") << result.end.text;
}

TEST(ZipShard, directory_with_data_is_format) {
    Zip zip = three();
    zip.entries.insert(zip.entries.begin() + 2, Entry{.name = "d/", .data = "data"});
    EXPECT_EQ(read_shard(zip.bytes()).end.code, SHF_E_FORMAT);
    zip.entries[2].data = "";
    EXPECT_EQ(read_shard(zip.bytes()).end.code, SHF_OK);
}

TEST(ZipShard, limits_of_samples) {
    Zip zip = zip_of({{"a.x", text(100)}, {"b.x", noise(3000)}, {"b.y", noise(3000)}, {"c.x", "c"}},
                     {zip_stored, zip_deflate});
    const auto keys = [&](const char* option, const char* value) {
        const ShardResult result =
            read_shard(zip.bytes(), options_with({{"on_error", "skip_sample"}, {option, value}}));
        EXPECT_EQ(result.end.code, SHF_OK) << result.end.text;
        std::string out;
        for (const SeenSample& sample : result.samples) out += sample.key;
        for (const SeenFault& fault : result.bad_samples) EXPECT_EQ(fault.code, SHF_E_LIMIT);
        return out + std::to_string(result.bad_samples.size());
    };
    EXPECT_EQ(keys("max_member", "3000"), "abc0");
    EXPECT_EQ(keys("max_member", "2999"), "ac1");
    EXPECT_EQ(keys("max_sample", "6000"), "abc0");
    EXPECT_EQ(keys("max_sample", "5999"), "ac1");
}

// ---- What is not a ZIP file, or not one that can be read --------------------------------------

TEST(ZipShard, only_where_it_can_be_read_at_any_offset) {
    const std::string bytes = three().bytes();
    const ShardResult stream = read_shard(bytes, {}, {.size_known = false});
    EXPECT_EQ(stream.end.code, SHF_E_UNSUPPORTED);
    EXPECT_NE(stream.end.text.find("help"), std::string::npos) << stream.end.text;
    for (const char* codec : codecs) {
        const ShardResult packed = read_shard(compress(codec, bytes), {}, {}, "x.zip.gz");
        EXPECT_EQ(packed.end.code, SHF_E_UNSUPPORTED) << codec << packed.end.text;
        EXPECT_NE(packed.end.text.find("help"), std::string::npos) << packed.end.text;
    }
}

TEST(ZipShard, other_contents_under_the_suffix) {
    const auto code = [](const std::string& bytes, const char* url = "file.zip") {
        return std::string(shf_error_name(read_shard(bytes, {}, {}, url).end.code));
    };
    EXPECT_EQ(code(""), "TRUNCATED");
    EXPECT_EQ(code("x"), "FORMAT");
    EXPECT_EQ(code("<html>not found</html>"), "FORMAT");
    EXPECT_EQ(code(noise(5000)), "FORMAT");
    EXPECT_EQ(code(std::string(5000, '\0')), "FORMAT");
    EXPECT_EQ(code(std::string(5000, '\0'), "FILE.ZIP"), "FORMAT");
    const std::string zip = three().bytes();
    EXPECT_EQ(code(zip.substr(0, zip.size() / 2)), "TRUNCATED");
    EXPECT_EQ(code(zip.substr(0, zip.size() / 2), "file.tar"), "TRUNCATED");
    // The contents decide, not the suffix.
    EXPECT_EQ(code(zip, "file.tar"), "OK");
    EXPECT_EQ(code(zip, ""), "OK");
    EXPECT_EQ(code(tar_of({{"a.x", "1"}})), "OK");
}

// ---- Memory -----------------------------------------------------------------------------------

// A large piece is for its own sample: a small one that comes after it must not keep it alive.
TEST(ZipShard, kept_samples_hold_little_more_than_they_have) {
    for (const uint16_t method : {zip_stored, zip_deflate}) {
        Zip zip;
        for (size_t i = 0; i < 20; ++i) {
            const std::string key = "k" + std::to_string(i);
            const size_t size = i % 4 == 0 ? 3000001 + i * 70000 : 10000 + 1000 * i;
            zip.entries.push_back(packed_entry(key + ".x", method, noise(size)));
            zip.entries.push_back(packed_entry(key + ".y", method, "1"));
        }
        const std::string bytes = zip.bytes();
        const Options options;
        Cancel cancel;
        Stats stats;
        const std::unique_ptr<Pool, PoolDrop> pool(Pool::make(options));
        CollectingSink sink(options);
        const auto source =
            memory_source({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
        const auto origin = std::make_shared<const Origin>(Origin{});
        SampleReader(*source, origin, {options, *pool, cancel, stats}, sink,
                     {.single_samples = true})
            .read();
        ASSERT_EQ(sink.samples().size(), 20U);
        for (const BlockRef& block : sink.blocks()) {
            ASSERT_EQ(block->count, 1U);
            EXPECT_LE(block->storage_bytes(), 65536 + 8 * block->payload_bytes) << block->key_of(0);
        }
    }
}

TEST(ZipShard, a_large_entry_takes_its_sizes) {
    const std::string data = noise(24 << 20);
    const std::string bytes =
        zip_of({{"a.x", "small"}, {"b.x", data}, {"c.x", "small"}}, {zip_deflate}).bytes();
    const ShardResult whole = read_shard(bytes, options_with({{"memory", "64MiB"}}));
    ASSERT_EQ(whole.end.code, SHF_OK) << whole.end.text;
    EXPECT_TRUE(whole.samples.at(1).fields[0].second == data);
    EXPECT_LE(whole.memory_peak, (uint64_t{24} << 20) * 9 / 8 + (1 << 20));
    // Stored and decompressed bytes together are more than may be held.
    const ShardResult none =
        read_shard(bytes, options_with({{"memory", "40MiB"}, {"on_error", "skip_sample"}}));
    ASSERT_EQ(none.bad_samples.size(), 1U);
    EXPECT_EQ(none.bad_samples[0].code, SHF_E_LIMIT);
    EXPECT_EQ(listing(none), "a{x=small} c{x=small}");
}

}  // namespace
}  // namespace shf::test
