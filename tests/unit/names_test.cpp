// What a member's name says: key and field (the rules of webdataset, sections 3.2 to 3.4 of its
// reference, but hidden files belong to no sample), for all bytes that a name can have.
#include "sample/name.h"

#include "shard_expect.h"
#include "tar_builder.h"

#include <random>
#include <set>

namespace shf::test {
namespace {

struct Row {
    const char* name;
    const char* key;  // NULL: no sample
    const char* field;
};

const Row rows[] = {
    {"a.txt", "a", "txt"},
    {"a.seg.png", "a", "seg.png"},
    {"dir/a.txt", "dir/a", "txt"},
    {"a.b/c.d/e.f", "a.b/c.d/e", "f"},
    {"./a.txt", "./a", "txt"},
    {"/a.txt", "/a", "txt"},
    {"a.", "a", ""},
    {"a..txt", "a", ".txt"},
    {"a...", "a", ".."},
    {"a b.txt", "a b", "txt"},
    {"a.JPG", "a", "JPG"},  // lower-cased later
    {"A.jpg", "A", "jpg"},
    {"", nullptr, nullptr},
    {"/", nullptr, nullptr},
    {"README", nullptr, nullptr},
    {"dir.d/README", nullptr, nullptr},
    {"dir.d/", nullptr, nullptr},
    // Hidden files: webdataset makes the key "dir/" of the third, which joins unrelated files.
    {".hidden", nullptr, nullptr},
    {".hidden.txt", nullptr, nullptr},
    {"dir/.hidden", nullptr, nullptr},
    {"dir/._a.jpg", nullptr, nullptr},
    {"./.x", nullptr, nullptr},
    {"..txt", nullptr, nullptr},
    {"..", nullptr, nullptr},
    {"a/..", nullptr, nullptr},
    // Metadata: the whole name, or its first component, between "__" and "__".
    {"__index__", nullptr, nullptr},
    {"__a.txt__", nullptr, nullptr},
    {"__m__/x.txt", nullptr, nullptr},
    {"__m__/y/x.txt", nullptr, nullptr},
    {"____/x.txt", nullptr, nullptr},
    {"___/x.txt", "___/x", "txt"},
    {"__/x.txt", "__/x", "txt"},
    {"sub/__m__/x.txt", "sub/__m__/x", "txt"},
    {"/__m__/x.txt", "/__m__/x", "txt"},
    {"__meta__.json", "__meta__", "json"},
    {"__x.txt", "__x", "txt"},
    {"x__.txt__", "x__", "txt__"},
    {"__x__y.txt", "__x__y", "txt"},
    {"__m__x/x.txt", "__m__x/x", "txt"},
};

TEST(SplitName, table) {
    for (const Row& row : rows) {
        const MemberName name = split_name(row.name);
        EXPECT_EQ(name.has_key, row.key != nullptr) << row.name;
        if (row.key == nullptr || !name.has_key) continue;
        EXPECT_EQ(name.key, row.key) << row.name;
        EXPECT_EQ(name.field, row.field) << row.name;
    }
}

// The same through a shard, by every header that can carry the name.
TEST(SplitName, table_in_shards) {
    for (const Row& row : rows) {
        if (std::string_view(row.name).ends_with('/')) continue;  // v7 takes them for directories
        for (const std::string& bytes :
             {member(row.name, "data", Carrier::v7), member(row.name, "data"),
              gnu_name(row.name) + member("other.name", "data", Carrier::gnu)}) {
            const ShardResult result =
                read_shard(bytes + end_marker(), options_with({{"allow_empty", "true"}}));
            ASSERT_EQ(result.end.code, SHF_OK) << row.name << ": " << result.end.text;
            EXPECT_EQ(result.samples.size(), row.key == nullptr ? 0U : 1U) << row.name;
            EXPECT_EQ(result.stat(SHF_STAT_IGNORED_MEMBERS), row.key == nullptr ? 1U : 0U)
                << row.name;
        }
    }
}

TEST(FieldName, is_lower_cased_as_ascii) {
    EXPECT_EQ(listing(expect_read(member("Key.JPG", "1") + member("Key.Seg.PNG", "2") +
                                  member("Key.\xc3\x84@[Z", "3") + end_marker())),
              "Key{jpg=1 seg.png=2 \xc3\x84@[z=3}");
}

TEST(FieldName, may_be_empty_or_odd) {
    EXPECT_EQ(listing(expect_read(member("k.", "1") + member("k..", "2") + member("k. ", "3") +
                                  member("k.__key__", "4") + member("k.\n", "5") + end_marker())),
              "k{=1 .=2  =3 __key__=4 \n=5}");
}

// Appendix B of the webdataset reference; of "a.txt" twice in a row of samples ours is an error.
TEST(Grouping, example_of_the_reference) {
    const std::string shard = header({.name = "adir/", .type = '5'}) + member("a.txt", "1") +
                              header({.name = "ln.txt", .type = '2', .link = "a.txt"}) +
                              header({.name = "hl.txt", .type = '1', .link = "a.txt"}) +
                              member({.name = "ct.txt", .type = '7'}, "2") + member("a.CLS", "3") +
                              member("README", "4") + member("__index__", "5") +
                              member("__meta__.json", "6") + member("__m__/x.txt", "7") +
                              member("sub/__m__/x.txt", "8") + member("__x.txt", "9") +
                              member("__x__y.txt", "10") + member("b.txt", "");
    const char* samples =
        "a{txt=1} ct{txt=2} a{cls=3} __meta__{json=6} sub/__m__/x{txt=8} __x{txt=9} "
        "__x__y{txt=10} b{txt=}";
    const Options accept = options_with({{"duplicate_keys", "accept"}});
    EXPECT_EQ(listing(expect_read(shard + end_marker(), accept)), samples);
    EXPECT_EQ(listing(expect_read(shard + member("a.txt", "11") + end_marker(), accept)),
              std::string(samples) + " a{txt=11}");
    expect_fault(shard + end_marker(), SHF_E_AMBIGUOUS, 512 + 1024 + 512 + 512 + 1024);
}

// V27: keys are bytes. None is changed, and no two become one.
TEST(Keys, ten_thousand_random_byte_strings) {
    std::mt19937 random(20260801);
    std::set<std::string> keys;
    while (keys.size() < 10000) {
        std::string key(1 + random() % (random() % 50 == 0 ? 400 : 24), '\0');
        for (char& c : key) {
            do c = static_cast<char>(1 + random() % 255);
            while (c == '/' || c == '.');
        }
        if (key.size() >= 4 && key.starts_with("__") && key.ends_with("__")) continue;
        keys.insert(key);
    }
    std::vector<std::string> order(keys.begin(), keys.end());
    std::shuffle(order.begin(), order.end(), random);
    std::string shard;
    for (size_t i = 0; i < order.size(); ++i) {
        const std::string name = order[i] + ".txt", data = std::to_string(i);
        if (name.size() <= 100 && i % 3 == 0)
            shard += member(name, data);
        else if (i % 2 == 0)
            shard += gnu_name(name) + member("x", data, Carrier::gnu);
        else
            shard += pax({{"path", name}}) + member("x", data);
    }
    for (const bool alone : {false, true}) {
        const ShardResult result = read_shard(shard + end_marker(), {}, {.alone = alone});
        ASSERT_EQ(result.end.code, SHF_OK) << result.end.text;
        ASSERT_EQ(result.samples.size(), order.size());
        for (size_t i = 0; i < order.size(); ++i) {
            ASSERT_EQ(result.samples[i].key, order[i]);
            ASSERT_EQ(result.samples[i].fields.at(0).second, std::to_string(i));
        }
    }
}

}  // namespace
}  // namespace shf::test
