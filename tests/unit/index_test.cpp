// The index of a tar says where the samples lie that a stream finds there; a file that is not what
// the library wrote is refused, or says the same.
#include "../sanitizers.h"
#include "filter_encoders.h"
#include "index_builder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace shf::test {
namespace {

// The samples that the index names, with the bytes at the places that it says.
std::vector<SeenSample> samples_of(const ShardIndex& index, std::string_view tar) {
    std::vector<SeenSample> samples;
    for (size_t i = 0; i < index.samples(); ++i) {
        SeenSample& sample = samples.emplace_back(
            SeenSample{.key = std::string(index.key(i)), .fields = {}, .offset = index.header(i)});
        for (size_t k = index.first_member(i); k < index.first_member(i + 1); ++k)
            sample.fields.emplace_back(index.schema(i)->name(k - index.first_member(i)),
                                       tar.substr(index.offset(k), index.size(k)));
    }
    return samples;
}

// The index of a shard, after it was compared with what a stream reads there, and the samples with
// what a dataset does.
std::shared_ptr<const ShardIndex> expect_index(const std::string& tar,
                                               const Options& options = {}) {
    auto index = build_index_of(tar, options);
    const ShardResult stream = read_shard(tar, options);
    EXPECT_EQ(stream.end.code, SHF_OK) << stream.end.text;
    EXPECT_TRUE(samples_of(*index, tar) == stream.samples);
    const IndexedTar shard(tar, index, options);
    EXPECT_EQ(shard.samples(), stream.samples.size());
    for (size_t i = 0; i < shard.samples(); ++i)
        EXPECT_TRUE(shard.read(i) == stream.samples[i]) << "sample " << i;
    // The file is that of the format, written by other means, and reads back as it was.
    EXPECT_TRUE(std::ranges::equal(index->file(), as_bytes(parts_of(*index).file())));
    const std::string_view file(reinterpret_cast<const char*>(index->file().data()),
                                index->file().size());
    EXPECT_TRUE(parts_of(*parse_index(file)) == parts_of(*index));
    return index;
}

std::vector<uint64_t> offsets_of(const ShardIndex& index) {
    return parts_of(index).offsets;
}

template <typename Do>
void expect_error(int32_t code, const char* text, Do action) {
    try {
        action();
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_STREQ(shf_error_name(error.code()), shf_error_name(code)) << error.what();
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
}

// ---- What tars give -----------------------------------------------------------------------------

TEST(IndexOf, plain_members) {
    const auto index = expect_index(member("d/a.jpg", std::string(700, 'j')) +
                                    member("d/a.cls", "7") + member("b.jpg", "") + end_marker());
    EXPECT_EQ(index->samples(), 2U);
    EXPECT_EQ(offsets_of(*index), (std::vector<uint64_t>{512, 2048, 3072}));
    EXPECT_EQ(parts_of(*index).headers, (std::vector<uint64_t>{0, 2560}));
    EXPECT_EQ(parts_of(*index).sizes, (std::vector<uint64_t>{700, 1, 0}));
    EXPECT_EQ(index->end(), 3072U);
    EXPECT_EQ(index->identity().size, 3072U + 1024);
}

TEST(IndexOf, headers_before_the_header) {
    const std::string long_name = std::string(150, 'n') + "/k.TXT";
    const auto index = expect_index(
        pax({{"path", "p.txt"}, {"size", "4"}}) + header({.name = "x"}) + padded("data") +
        gnu_name(long_name) + member("short", "gnu", Carrier::gnu) +
        with(header({.name = "b.txt"}), size_field, base256(3)) + padded("256") +
        member({.name = "u.txt", .prefix = "some/dir"}, "ustar") + pax({{"comment", "c"}}, 'g') +
        member("v.txt", "v7", Carrier::v7) + end_marker());
    EXPECT_EQ(index->samples(), 5U);
    EXPECT_EQ(index->key(1), std::string(150, 'n') + "/k");
    EXPECT_EQ(index->key(3), "some/dir/u");
    EXPECT_EQ(offsets_of(*index), (std::vector<uint64_t>{1536, 3584, 4608, 5632, 7680}));
    // A sample starts with the first header that belongs to it.
    EXPECT_EQ(parts_of(*index).headers, (std::vector<uint64_t>{0, 2048, 4096, 5120, 6144}));
}

TEST(IndexOf, what_is_no_field) {
    const auto index = expect_index(
        header({.name = "d/", .type = '5'}) + member("a.x", "1") +
        header({.name = "a.l", .type = '2', .link = "a.x"}) + member("README", "ignored") +
        member("__meta__/shard.json", "{}") + member("a.y", "22") +
        header({.name = "h.x", .type = '1', .link = "a.x"}) + member(".hidden.x", "h") +
        member("a.", "333") + header({.name = "dev.x", .type = '3'}) + end_marker());
    EXPECT_EQ(index->samples(), 1U);
    EXPECT_EQ(index->schema(0)->names, "x/y//");
    EXPECT_EQ(index->header(0), 512U);
    EXPECT_EQ(index->end(), 9 * 512 + 6 * 512U + 512);
}

TEST(IndexOf, empty_and_upper_case_fields) {
    const auto index = expect_index(member("a.JPG", "") + member("a.Seg.PNG", "") +
                                    member("B.jpg", "") + member("B.seg.png", "1") + end_marker());
    EXPECT_EQ(index->key(1), "B");
    EXPECT_EQ(index->schema(0), index->schema(1));
    EXPECT_EQ(index->schema(0)->names, "jpg/seg.png/");
}

TEST(IndexOf, many_kinds_of_samples) {
    std::string tar;
    for (size_t i = 0; i < 100; ++i)
        for (size_t k = 0; k <= i % 25; ++k)
            tar += member(numbered("s", i) + "." + numbered("f", i % 25 + k), numbered("", i * k));
    const auto index = expect_index(tar + end_marker());
    for (size_t i = 25; i < 100; ++i) {
        EXPECT_EQ(index->schema(i), index->schema(i - 25));
        EXPECT_NE(index->schema(i), index->schema(i - 1));
    }
}

TEST(IndexOf, many_fields) {
    std::string tar;
    for (size_t i = 0; i < 3000; ++i) tar += member(numbered("s.f", i), i % 3 == 0 ? "" : "abc");
    const auto index = expect_index(tar + member("t.f0", "t") + end_marker());
    EXPECT_EQ(index->samples(), 2U);
}

TEST(IndexOf, several_archives_in_one_file) {
    const std::string one = member("a.x", "1") + end_marker();
    const auto index =
        expect_index(one + member("b.x", "2") + end_marker(), options_with({{"concat", "true"}}));
    EXPECT_EQ(offsets_of(*index), (std::vector<uint64_t>{512, 2560}));
    const auto open_end =
        expect_index(member("a.x", "1"), options_with({{"end_marker", "optional"}}));
    EXPECT_EQ(open_end->end(), 1024U);
}

TEST(IndexOf, limits_of_size_are_for_reading) {
    const std::string tar = member("a.x", std::string(9000, 'x')) + end_marker();
    const auto index = build_index_of(
        tar, options_with({{"max_member", "10"}, {"max_sample", "10"}, {"memory", "1MiB"}}));
    EXPECT_EQ(index->size(0), 9000U);
}

TEST(IndexOf, shards_without_samples) {
    const std::string tar = member("README", "r") + end_marker();
    expect_error(SHF_E_FORMAT, "empty shard", [&] { (void)build_index_of(tar); });
    const auto index = build_index_of(tar, options_with({{"allow_empty", "true"}}));
    EXPECT_EQ(index->samples(), 0U);
    EXPECT_EQ(index->members(), 0U);
    EXPECT_TRUE(parts_of(*parse_index(parts_of(*index).file())) == parts_of(*index));
}

TEST(IndexOf, bad_shards) {
    const std::string a = member("a.x", "1"), end = end_marker();
    const auto refuse = [](int32_t code, const char* text, const std::string& tar) {
        expect_error(code, text, [&] { (void)build_index_of(tar); });
    };
    refuse(SHF_E_FORMAT, "gzip", "\x1f\x8b\x08"s + zeros(600));
    refuse(SHF_E_UNSUPPORTED, "sparse", a + sparse_pax_1_0("s.x") + end);
    refuse(SHF_E_AMBIGUOUS, "twice", a + member("a.X", "2") + end);
    refuse(SHF_E_AMBIGUOUS, "again", a + member("b.x", "2") + a + end);
    refuse(SHF_E_TRUNCATED, "", a + member("b.x", "2"));
    refuse(SHF_E_TRUNCATED, "", (a + member("b.x", "2")).substr(0, 1600));
    refuse(SHF_E_FORMAT, "checksum", a + std::string(a).replace(0, 1, "b") + end);
}

TEST(IndexOf, thirty_two_bytes_for_each_member) {
    constexpr size_t count = 5000;
    std::string tar;
    size_t names = 0;
    for (size_t i = 0; i < count; ++i) {
        const std::string key = numbered("k", 100000 + i);
        names += key.size();
        tar += member(key + ".jpg", "");
    }
    const size_t size = build_index_of(tar + end_marker())->file().size();
    const double each = static_cast<double>(size - names) / count;
    std::printf("%.2f bytes for each member besides its name\n", each);
    EXPECT_LE(size, names + 32 * count + 300);  // 300: what is there once
}

// ---- Damaged files ------------------------------------------------------------------------------

std::string small_tar() {
    return member("a.jpg", "jpeg") + member("a.cls", "7") + member("README", "") +
           member("b/b.jpg", "more") + end_marker();
}

bool is_refusal(int32_t code) {
    return code == SHF_E_FORMAT || code == SHF_E_INTEGRITY || code == SHF_E_UNSUPPORTED;
}

TEST(DamagedIndex, every_prefix) {
    const std::string file = parts_of(*build_index_of(small_tar())).file();
    ASSERT_EQ(code_of_index(file), SHF_OK);
    for (size_t size = 0; size < file.size(); ++size)
        EXPECT_EQ(code_of_index(file.substr(0, size)), SHF_E_FORMAT) << size;
    EXPECT_EQ(code_of_index(file + '\0'), SHF_E_FORMAT);
}

// Another content must never come out of it, whatever the byte.
TEST(DamagedIndex, every_byte) {
    const IndexParts parts = parts_of(*build_index_of(small_tar()));
    const std::string file = parts.file();
    size_t same = 0;
    for (size_t at = 0; at < file.size(); ++at)
        for (int change = 1; change < 256; ++change) {
            std::string damaged = file;
            damaged[at] = static_cast<char>(damaged[at] ^ change);
            try {
                EXPECT_TRUE(parts_of(*parse_index(damaged)) == parts) << "byte " << at;
                ++same;
            } catch (const Error& error) {
                EXPECT_TRUE(is_refusal(error.code())) << error.what();
            }
        }
    EXPECT_LT(same, 10U);  // such as the checksum as a signed number
}

uint64_t peak_of_addresses() {
    std::ifstream status("/proc/self/status");
    std::string word;
    uint64_t kilobytes = 0;
    while (status >> word)
        if (word == "VmPeak:") status >> kilobytes;
    return kilobytes << 10;
}

TEST(DamagedIndex, claims_take_no_memory) {
    const std::string start = "\x94" + pack_text("shardfeed-index");
    const uint64_t before = peak_of_addresses();
    const std::string claims[] = {"\xdd\x7f\xff\xff\xff", "\xdd\xff\xff\xff\xff",
                                  "\xdc\xff\xff",         "\xdf\x7f\xff\xff\xff",
                                  "\xde\xff\xff",         "\xdb\xff\xff\xff\xff",
                                  "\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x01"};
    for (const std::string& claim : claims) {
        EXPECT_EQ(code_of_index(claim), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(start + claim), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(start + "\x01" + claim), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(start + "\x01\x02" + claim), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(index_file(claim)), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(index_file("\x81" + claim)), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(index_file("\x81" + pack_text("size") + claim)), SHF_E_FORMAT);
    }
    for (const char* nested : {"\x91", "\x81", "\xdd\0\0\0\1"}) {
        std::string deep;
        for (int i = 0; i < 100000; ++i) deep += nested[0] == '\xdd' ? "\xdd\0\0\0\1"s : nested;
        EXPECT_EQ(code_of_index(start + deep), SHF_E_FORMAT);
        EXPECT_EQ(code_of_index(index_file("\x81" + pack_text("size") + deep)), SHF_E_FORMAT);
    }
    if (!SANITIZED) {
        EXPECT_LT(peak_of_addresses() - before, 32U << 20);
    }
}

// ---- Files that are sealed but wrong ------------------------------------------------------------

void expect_entries_are_needed(const std::vector<std::pair<std::string, std::string>>& entries,
                               uint64_t version) {
    const auto code = [version](const auto& its_entries) {
        return code_of_index(index_file(IndexParts::pack_map(its_entries), version));
    };
    ASSERT_EQ(code(entries), SHF_OK);
    for (size_t i = 0; i < entries.size(); ++i) {
        SCOPED_TRACE(entries[i].first);
        auto wrong = entries;
        wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_EQ(code(wrong), SHF_E_FORMAT);
        wrong = entries;
        wrong.push_back(entries[i]);
        EXPECT_EQ(code(wrong), SHF_E_FORMAT);
        const bool is_number = entries[i].second[0] != '\xc4';
        for (const std::string& value :
             {is_number ? pack_bytes("abcd") : pack_number(4), pack_text("abcd"), "\xff"s, "\xc0"s,
              "\xc3"s, "\xcb"s + zeros(8), "\x90"s, "\x80"s, "\xd6\x01"s + zeros(4)}) {
            wrong = entries;
            wrong[i].second = value;
            EXPECT_EQ(code(wrong), SHF_E_FORMAT);
        }
    }
    // What a later version adds is passed over.
    auto more = entries;
    more.insert(more.begin(), {"more", pack_number(1)});
    EXPECT_EQ(code(more), SHF_OK);
}

TEST(WrongIndex, every_entry_is_needed_and_of_its_type) {
    for (const bool compressed : {false, true}) {
        SCOPED_TRACE(compressed);
        const std::string tar = compressed ? gzip(small_tar()) : small_tar();
        expect_entries_are_needed(parts_of(*build_index_of(tar)).entries(), compressed ? 2 : 1);
    }
    // The outer array.
    const std::string body = IndexParts::pack_map(parts_of(*build_index_of(small_tar())).entries());
    EXPECT_EQ(code_of_index(index_file(body, 0)), SHF_E_UNSUPPORTED);
    EXPECT_EQ(code_of_index(index_file(body, 2)), SHF_E_FORMAT);
    EXPECT_EQ(code_of_index(index_file(body, 3)), SHF_E_UNSUPPORTED);
    EXPECT_EQ(code_of_index("\x95" + index_file(body).substr(1) + "\x01"), SHF_E_FORMAT);
    std::string other = index_file(body);
    overwrite(other, 2, "shardfeed-INDEX");
    EXPECT_EQ(code_of_index(other), SHF_E_FORMAT);
}

TEST(WrongIndex, numbers_that_do_not_fit_together) {
    const IndexParts good = parts_of(*build_index_of(small_tar()));
    ASSERT_EQ(good.key_ends, (std::vector<uint32_t>{1, 4}));
    ASSERT_EQ(good.offsets, (std::vector<uint64_t>{512, 1536, 3072}));
    const auto refuse = [&](const char* what, const std::function<void(IndexParts&)>& change) {
        IndexParts parts = good;
        change(parts);
        EXPECT_EQ(code_of_index(parts.file()), SHF_E_FORMAT) << what;
    };
    refuse("a hash of 15 bytes", [](auto& p) { p.head.pop_back(); });
    refuse("a hash of 17 bytes", [](auto& p) { p.tail += 'x'; });
    refuse("an end outside", [](auto& p) { p.end = p.size + 1; });
    refuse("a member outside", [](auto& p) { p.end = 3072; });
    refuse("one key more", [](auto& p) { p.key_ends.push_back(4); });
    refuse("one key less", [](auto& p) { p.key_ends.pop_back(); });
    refuse("a key that ends too late", [](auto& p) { p.key_ends[1] = 5; });
    refuse("a key that ends before it starts", [](auto& p) { p.key_ends = {4, 1}; });
    refuse("keys left over", [](auto& p) { p.keys += 'x'; });
    refuse("one schema more", [](auto& p) { p.schema.push_back(0); });
    refuse("no such schema", [](auto& p) { p.schema[1] = 2; });
    refuse("the other schema", [](auto& p) { p.schema[1] = 0; });
    refuse("schemas without end", [](auto& p) { p.schemas.pop_back(); });
    refuse("a schema without names", [](auto& p) { p.schemas += '\0'; });
    refuse("a name without end", [](auto& p) { p.schemas = "jpg/cls\0jpg/\0"s; });
    refuse("no schemas", [](auto& p) { p.schemas.clear(); });
    refuse("one header more", [](auto& p) { p.headers.push_back(3584); });
    refuse("headers in another order", [](auto& p) { std::swap(p.headers[0], p.headers[1]); });
    refuse("a header at an odd byte", [](auto& p) { p.headers[1] += 1; });
    refuse("a header inside a member", [](auto& p) { p.headers[1] = 1024; });
    refuse("a header behind its member", [](auto& p) { p.headers[1] = 3072; });
    refuse("one offset more", [](auto& p) { p.offsets.push_back(4096); });
    refuse("one member more", [](auto& p) {
        p.offsets.push_back(4096);
        p.sizes.push_back(0);
        p.end = p.size;
    });
    refuse("one member less", [](auto& p) {
        p.offsets.pop_back();
        p.sizes.pop_back();
    });
    refuse("members in another order", [](auto& p) { std::swap(p.offsets[0], p.offsets[1]); });
    refuse("members over one another", [](auto& p) { p.sizes[0] = 513; });
    refuse("no room for the first header", [](auto& p) { p.offsets[0] = 0; });
    refuse("an odd offset", [](auto& p) { p.offsets[1] -= 2; });
    refuse("an offset far outside", [](auto& p) { p.offsets[2] = UINT64_MAX - 511; });
    refuse("a size far outside", [](auto& p) { p.sizes[2] = UINT64_MAX; });
    refuse("offset and size overflow", [](auto& p) { p.sizes[2] = UINT64_MAX - p.offsets[2] + 1; });
    refuse("a size that overflows in the middle", [](auto& p) { p.sizes[0] = UINT64_MAX - 511; });
    // Parts of numbers.
    const std::pair<const char*, size_t> columns[] = {
        {"key_ends", 3}, {"schema", 2}, {"headers", 7}, {"offsets", 4}, {"sizes", 1}};
    for (const auto& [name, more] : columns) {
        auto entries = good.entries();
        for (auto& [entry, value] : entries)
            if (entry == name) value = pack_bytes(value.substr(2) + zeros(more));
        EXPECT_EQ(code_of_index(index_file(IndexParts::pack_map(entries))), SHF_E_FORMAT) << name;
    }
}

// ---- Files that fit together and lie ------------------------------------------------------------

struct Lies {
    size_t refused = 0, read = 0, lies = 0;  // indexes, samples, samples
};

void try_lie(const std::string& tar, const std::vector<SeenSample>& truth, const IndexParts& parts,
             Lies& lies) {
    std::shared_ptr<const ShardIndex> index;
    try {
        index = parse_index(parts.file());
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), SHF_E_FORMAT);
        ++lies.refused;
        return;
    }
    const IndexedTar shard(tar, index);
    for (size_t i = 0; i < shard.samples(); ++i) {
        try {
            EXPECT_TRUE(is_true(shard.read(i), truth)) << "sample " << i;
            ++lies.read;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_FORMAT) << error.what();
            ++lies.lies;
        }
    }
}

// Samples of the same sizes, so that most lies fit together.
std::string alike_tar(bool pax_before) {
    std::string tar;
    for (const char* key : {"a", "b", "c"})
        for (const char* field : {"jpg", "cls"}) {
            const std::string name = std::string(key) + "." + field;
            if (pax_before)
                tar += pax({{"path", name}}) + member("short", name);
            else
                tar += member(name, name);
        }
    return tar + member("d.cls", "d.cls") + end_marker();
}

TEST(LyingIndex, numbers_of_others) {
    for (const bool pax_before : {false, true}) {
        const std::string tar = alike_tar(pax_before);
        const auto truth = read_shard(tar).samples;
        const IndexParts good = parts_of(*build_index_of(tar));
        Lies lies;
        const auto change = [&](auto column) {
            for (size_t i = 0; i < (good.*column).size(); ++i) {
                IndexParts parts = good;
                for (const auto number : good.*column) {
                    (parts.*column)[i] = number;
                    try_lie(tar, truth, parts, lies);
                }
                for (uint64_t number = 0; number < 40; ++number) {
                    (parts.*column)[i] =
                        static_cast<std::decay_t<decltype((parts.*column)[i])>>(number);
                    try_lie(tar, truth, parts, lies);
                }
                for (uint64_t number = 0; number < tar.size(); number += 512) {
                    (parts.*column)[i] =
                        static_cast<std::decay_t<decltype((parts.*column)[i])>>(number);
                    try_lie(tar, truth, parts, lies);
                }
            }
        };
        change(&IndexParts::sizes);
        change(&IndexParts::offsets);
        change(&IndexParts::headers);
        change(&IndexParts::schema);
        change(&IndexParts::key_ends);
        for (size_t i = 0; i < good.keys.size(); ++i) {
            IndexParts parts = good;
            for (const char c : "abcdABCD/.\0\xff"s) {
                parts.keys[i] = c;
                try_lie(tar, truth, parts, lies);
            }
        }
        for (size_t i = 0; i < good.schemas.size(); ++i) {
            IndexParts parts = good;
            for (int c = 0; c < 256; ++c) {
                parts.schemas[i] = static_cast<char>(c);
                try_lie(tar, truth, parts, lies);
            }
        }
        EXPECT_GT(lies.refused, 100U);
        EXPECT_GT(lies.read, 100U);
        EXPECT_GT(lies.lies, 100U);
    }
}

// Keys and names of one sample, and places of real members that belong to another.
TEST(LyingIndex, places_of_another_sample) {
    for (const bool pax_before : {false, true}) {
        const std::string tar = alike_tar(pax_before);
        const auto truth = read_shard(tar).samples;
        const IndexParts good = parts_of(*build_index_of(tar));
        Lies lies;
        for (size_t from = 1; from + 2 <= good.offsets.size(); ++from)
            for (size_t sample = 0; sample < 3; ++sample) {
                if (from == 2 * sample) continue;  // its own
                IndexParts parts = good;
                parts.keys = std::string(1, "abc"[sample]);
                parts.key_ends = {1};
                parts.schema = {0};
                parts.offsets = {good.offsets[from], good.offsets[from + 1]};
                parts.sizes = {good.sizes[from], good.sizes[from + 1]};
                parts.headers = {good.offsets[from] - (pax_before ? 3 : 1) * 512};
                try_lie(tar, truth, parts, lies);
            }
        EXPECT_EQ(lies.refused, 0U);
        EXPECT_EQ(lies.read, 0U);
        EXPECT_EQ(lies.lies, 13U);
    }
}

// The bytes of a member look like members: an index must not tell them for samples without being
// seen, unless they are headers to the last byte.
TEST(LyingIndex, bytes_that_are_no_header) {
    std::string inner = member("x.jpg", "evil");
    inner[0] = 'y';  // its checksum is wrong now
    const std::string tar = member("a.jpg", inner) + end_marker();
    IndexParts parts = parts_of(*build_index_of(tar));
    parts.offsets = {1024};
    parts.sizes = {4};
    for (const char* key : {"x", "y", "a"}) {
        parts.keys = key;
        const IndexedTar shard(tar, parse_index(parts.file()));
        expect_error(SHF_E_FORMAT, "not where the index says", [&] { (void)shard.read(0); });
    }
}

}  // namespace
}  // namespace shf::test
