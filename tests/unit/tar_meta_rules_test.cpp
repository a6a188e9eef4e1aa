// Rules T7 to T13: headers that describe the next member - pax, GNU long names, sparse maps.
#include "shard_expect.h"
#include "tar_builder.h"

namespace shf::test {
namespace {

constexpr uint64_t here = 1024;

std::string between(std::string_view middle) {
    return member("a.txt", "first") + std::string(middle) + member("z.txt", "last") + end_marker();
}

ShardResult expect_bad(std::string_view middle, int32_t code, uint64_t offset = here,
                       const Options& options = {}) {
    return expect_fault(between(middle), code, offset, options);
}

ShardResult expect_good(std::string_view middle, std::string_view samples,
                        const Options& options = {}) {
    ShardResult result = expect_read(between(middle), options);
    const std::string gap = samples.empty() ? " " : " " + std::string(samples) + " ";
    EXPECT_EQ(listing(result), "a{txt=first}" + gap + "z{txt=last}");
    return result;
}

const Options skipping = options_with({{"on_error", "skip_sample"}});

// ---- T7: pax size against header size ---------------------------------------------------------

// A reader that goes by the header takes `inner` for members of the archive (CVE-2025-62518), one
// that goes by pax for data.
TEST(T7PaxSize, holds_for_body_and_advance) {
    const std::string inner = member("evil.txt", "evil");
    const std::string records = std::to_string(inner.size());
    const ShardResult result =
        expect_good(pax({{"size", records}}) + header({.name = "b.txt", .size = 0}) + inner,
                    "b{txt=" + inner + "}");
    EXPECT_EQ(result.stat(SHF_STAT_SIZE_DISAGREEMENTS), 1U);
}

// The mirror image (CVE-2026-33055): pax says less than the header.
TEST(T7PaxSize, smaller_than_the_header) {
    const ShardResult result =
        expect_good(pax({{"size", "4"}}) + header({.name = "b.txt", .size = 1536}) +
                        padded("data") + member("c.txt", "real"),
                    "b{txt=data} c{txt=real}");
    EXPECT_EQ(result.stat(SHF_STAT_SIZE_DISAGREEMENTS), 1U);
}

TEST(T7PaxSize, agreement_is_not_counted) {
    const ShardResult result =
        expect_good(pax({{"size", "4"}}) + member("b.txt", "data"), "b{txt=data}");
    EXPECT_EQ(result.stat(SHF_STAT_SIZE_DISAGREEMENTS), 0U);
}

// It waits for the real member: a 'g' header between has its own size.
TEST(T7PaxSize, not_for_a_header_between) {
    expect_good(pax({{"size", "4"}}) + pax({{"comment", "a comment of some length"}}, 'g') +
                    header({.name = "b.txt", .size = 0}) + padded("data"),
                "b{txt=data}");
}

TEST(T7PaxSize, for_one_member_only) {
    const ShardResult result =
        expect_good(pax({{"size", "4"}}) + member("b.txt", "data") + member("c.txt", "longer data"),
                    "b{txt=data} c{txt=longer data}");
    EXPECT_EQ(result.stat(SHF_STAT_SIZE_DISAGREEMENTS), 0U);
}

// Links and directories have no data, by pax neither.
TEST(T7PaxSize, on_a_link_or_directory) {
    for (const char type : {'1', '2', '3', '5'})
        expect_bad(pax({{"size", "512"}}) + header({.name = "b.txt", .type = type}) + zeros(512),
                   SHF_E_FORMAT, here + 1024);
}

// ---- T8, T12: limits --------------------------------------------------------------------------

TEST(T8HugePax, limit_over_the_total) {
    const Options options = options_with({{"max_meta", "4000"}});
    const auto comment = [](size_t body, char type = 'x') {
        // A record whose length has four digits, "1234 comment=...\n".
        return pax({{"comment", std::string(body - 14, 'c')}}, type);
    };
    const std::string next = member("b.txt", "data");
    expect_good(comment(4000) + next, "b{txt=data}", options);
    expect_good(comment(3999) + next, "b{txt=data}", options);
    const ShardResult result = expect_bad(comment(4001) + next, SHF_E_LIMIT, here, options);
    EXPECT_NE(result.end.text.find("max_meta=4000"), std::string::npos) << result.end.text;
    // Together: a global header, then one for the member. Each member has the limit for itself.
    const std::string global = comment(2000, 'g');
    expect_good(global + comment(2000) + next, "b{txt=data}", options);
    expect_bad(global + comment(2001) + next, SHF_E_LIMIT, here + global.size(), options);
    expect_good(comment(3000) + next + comment(3000) + member("c.txt", "data"),
                "b{txt=data} c{txt=data}", options);
    expect_good(global + next + global + member("c.txt", "data") + global,
                "b{txt=data} c{txt=data}", options);
}

TEST(T8HugePax, many_records_take_little_memory) {
    std::string body;
    while (body.size() + 40 < (1 << 20)) body += record(numbered("vendor.key", body.size()), "v");
    const std::string shard = between(pax_body(body) + member("b.txt", "data"));
    const ShardResult good = read_shard(shard);
    EXPECT_EQ(listing(good), "a{txt=first} b{txt=data} z{txt=last}");
    EXPECT_LE(good.memory_peak, uint64_t{2} << 20);
}

// CVE-2022-2879: nothing is allocated for a size that was only declared.
TEST(T8HugePax, declared_size_takes_no_memory) {
    const std::string shard = between(header({.name = "x", .type = 'x', .size = 100 << 20}));
    expect_fault(shard, SHF_E_LIMIT, here);
    const Options wide = options_with({{"max_meta", "1GiB"}});
    expect_fault(shard, SHF_E_TRUNCATED, here, wide);
    for (const bool size_known : {true, false})
        EXPECT_LE(read_shard(shard, wide, {.size_known = size_known}).memory_peak,
                  uint64_t{4} << 20);
}

TEST(T12LongName, limit_on_both_sides) {
    const Options options = options_with({{"max_name", "300"}});
    const std::string at_limit = std::string(296, 'n') + ".txt", above = "n" + at_limit;
    const std::string sample = std::string(296, 'n') + "{txt=data}";
    const std::string gnu = member("c", "data", Carrier::gnu), ustar = member("c", "data");
    expect_good(gnu_name(at_limit) + gnu, sample, options);
    expect_bad(gnu_name(above) + gnu, SHF_E_LIMIT, here, options);
    expect_good(pax({{"path", at_limit}}) + ustar, sample, options);
    expect_bad(pax({{"path", above}}) + ustar, SHF_E_LIMIT, here + 1024, options);
    const Options small = options_with({{"max_name", "14"}});
    expect_good(member({.name = "b.txt", .prefix = "pre.fix8"}, "data"), "pre.fix8/b{txt=data}",
                small);
    const ShardResult result = expect_bad(member({.name = "b.txt", .prefix = "pre.fix89"}, "data"),
                                          SHF_E_LIMIT, here, small);
    EXPECT_NE(result.end.text.find("max_name=14"), std::string::npos) << result.end.text;
}

// ---- T9: pax records --------------------------------------------------------------------------

TEST(T9PaxRecord, malformed) {
    const std::string next = member("b.txt", "data");
    for (const std::string& body : {
             "comment=c\n"s,                       // no length
             " 12 comment=c\n"s,                   // not at once
             "x12 comment=c\n"s,                   //
             "-12 comment=c\n"s,                   //
             "+13 comment=c\n"s,                   //
             "0x0e comment=c\n"s,                  //
             "13comment=cc\n"s,                    // no blank
             "13\tcomment=c\n"s,                   //
             "13"s,                                // nothing else
             "13 "s,                               //
             "12 comment=c\n"s,                    // shorter than the record
             "14 comment=c\n"s,                    // longer than the header
             "99999 comment=c\n"s,                 //
             "18446744073709551629 comment=c\n"s,  // 13 above 2^64
             "0 comment=c\n"s,                     // CVE-2019-20907: no progress
             "3 \n"s,                              // no room for a key
             "4  \n"s,                             //
             "13 comment=cX"s,                     // no newline
             "12 comment\n\n"s,                    // no '='
             "5 =c\n"s,                            // no key
             "12 comment=\n"s,                     // no value
             "13 com\0ent=c\n"s,                   // NUL in the key
             "13 comment=c\n\0"s,                  // more than the records
         })
        expect_bad(pax_body(body) + next, SHF_E_FORMAT);
    expect_good(pax_body("13 comment=c\n") + next, "b{txt=data}");
    expect_good(pax_body("0015 comment=c\n") + next, "b{txt=data}");
    expect_good(pax_body("") + next, "b{txt=data}");
}

// A zero-length value lost the block alignment of libarchive in 2025.
TEST(T9PaxRecord, empty_value) {
    for (const char* key : {"path", "linkpath", "size", "comment", "hdrcharset"})
        expect_bad(pax({{key, ""}}) + member("b.txt", "data"), SHF_E_FORMAT);
    // Settled: of what nobody uses only the form counts.
    for (const char* key : {"uname", "gname", "SCHILY.xattr.user.a", "LIBARCHIVE.xattr.user.a"})
        expect_good(pax({{key, ""}}) + member("b.txt", "data"), "b{txt=data}");
}

TEST(T9PaxRecord, nul_is_legal_in_attributes_only) {
    for (const char* key : {"path", "linkpath", "uname", "gname", "comment", "vendor.key"})
        expect_bad(pax({{key, "a\0b"s}}) + member("b.txt", "data"), SHF_E_FORMAT);
    for (const char* key : {"SCHILY.xattr.user.a", "LIBARCHIVE.xattr.user.a"})
        expect_good(pax({{key, "a\0b"s}}) + member("b.txt", "data"), "b{txt=data}");
}

TEST(T9PaxRecord, size_is_decimal) {
    for (const char* size : {"4x", "0x4", " 4", "4 ", "+4", "4.0", "1e3", "18446744073709551616"})
        expect_bad(pax({{"size", size}}) + member("b.txt", "data"), SHF_E_FORMAT);
    expect_good(pax({{"size", "004"}}) + member("b.txt", "data"), "b{txt=data}");
    for (const char* unused : {"mtime", "atime", "uid", "gid"})
        expect_good(pax({{unused, "yesterday"}}) + member("b.txt", "data"), "b{txt=data}");
}

TEST(T9PaxRecord, value_may_hold_newlines_and_records) {
    expect_good(pax({{"path", "b\n12 path=evil\n.txt"}}) + member("c.txt", "data"),
                "b\n12 path=evil\n{txt=data}");
    expect_good(pax({{"comment", "\n20 path=evil.txt\n"}}) + member("b.txt", "data"),
                "b{txt=data}");
    expect_good(pax({{"vendor=key", "1=2"}, {"path", "b=c.txt"}}) + member("c.txt", "data"),
                "b=c{txt=data}");
}

TEST(T9PaxRecord, last_of_a_repeated_key_wins) {
    expect_good(pax({{"path", "no.txt"}, {"size", "7"}, {"path", "b.txt"}, {"size", "4"}}) +
                    header({.name = "c.txt", .size = 4}) + padded("data"),
                "b{txt=data}");
}

// ---- T10: global headers ----------------------------------------------------------------------

TEST(T10Global, names_and_sizes_are_format) {
    for (const char* key : {"path", "linkpath", "size", "GNU.sparse.name", "GNU.sparse.major"})
        expect_bad(pax({{key, "1"}}, 'g') + member("b.txt", "data"), SHF_E_FORMAT);
    expect_good(
        pax({{"comment", "0123456789abcdef"}, {"mtime", "1"}}, 'g') + member("b.txt", "data"),
        "b{txt=data}");
}

TEST(T10Global, is_bounded) {
    expect_bad(pax_body(std::string(1 << 20, 'g') + "g", 'g') + member("b.txt", "data"),
               SHF_E_LIMIT);
}

TEST(T10Global, may_come_twice_and_at_the_end) {
    const std::string global = pax({{"comment", "c"}}, 'g');
    expect_good(global + global + member("b.txt", "data"), "b{txt=data}");
    EXPECT_EQ(listing(expect_read(member("a.txt", "first") + global + end_marker())),
              "a{txt=first}");
}

// ---- T11: nothing after a pending header ------------------------------------------------------

TEST(T11Pending, at_the_end_is_format) {
    const std::string first = member("a.txt", "first");
    for (const std::string& pending :
         {pax({{"path", "b.txt"}}), pax({{"comment", "c"}}), gnu_name("b.txt"),
          gnu_long("target\0"s, 'K'), gnu_name("b.txt") + gnu_long("target\0"s, 'K')}) {
        const Options loose =
            options_with({{"end_marker", "optional"}, {"concat", "true"}, {"trailing", "ignore"}});
        for (const Options& options : {Options(), loose}) {
            expect_fault(first + pending + end_marker(), SHF_E_FORMAT, here, options);
            expect_fault(first + pending + end_marker() + first + end_marker(), SHF_E_FORMAT, here,
                         options);
            expect_fault(first + pending, SHF_E_FORMAT, here, options);
        }
        expect_read(first + pending + member("b.txt", "data", Carrier::gnu) + end_marker());
    }
}

// ---- T12: GNU long names ----------------------------------------------------------------------

TEST(T12LongName, ends_at_its_first_nul_or_its_length) {
    const std::string next = member("c", "data", Carrier::gnu);
    expect_good(gnu_long("b.txt\0junk.jpg"s) + next, "b{txt=data}");
    expect_good(gnu_long("b.txt") + next, "b{txt=data}");
    const std::string block_sized = std::string(508, 'n') + ".txt";
    expect_good(gnu_long(block_sized) + next, std::string(508, 'n') + "{txt=data}");
}

TEST(T12LongName, twice_is_ambiguous) {
    const std::string next = member("c.txt", "data", Carrier::gnu), l = gnu_name("b.txt"),
                      k = gnu_long("target\0"s, 'K');
    expect_bad(l + l + next, SHF_E_AMBIGUOUS, here + 1024);
    expect_bad(k + k + next, SHF_E_AMBIGUOUS, here + 1024);
    expect_bad(l + k + l + next, SHF_E_AMBIGUOUS, here + 2048);
    expect_good(l + k + next, "b{txt=data}");
    expect_good(k + l + next, "b{txt=data}");
    expect_good(l + next + gnu_name("d.txt") + next, "b{txt=data} d{txt=data}");
}

TEST(T12LongName, mixed_with_pax_is_ambiguous) {
    const std::string l = gnu_name("b.txt"), k = gnu_long("target\0"s, 'K');
    for (const std::string& x :
         {pax({{"path", "c.txt"}}), pax({{"comment", "c"}}), pax({{"path", "c.txt"}}, 'X')})
        for (const std::string& gnu : {l, k}) {
            expect_bad(gnu + x + member("d.txt", "data"), SHF_E_AMBIGUOUS, here + gnu.size());
            expect_bad(x + gnu + member("d.txt", "data"), SHF_E_AMBIGUOUS, here + x.size());
        }
}

TEST(T12LongName, two_pax_headers_are_ambiguous) {
    const std::string x = pax({{"path", "b.txt"}}), global = pax({{"comment", "c"}}, 'g');
    expect_bad(x + x + member("d.txt", "data"), SHF_E_AMBIGUOUS, here + x.size());
    expect_bad(x + pax({{"path", "b.txt"}}, 'X') + member("d.txt", "data"), SHF_E_AMBIGUOUS,
               here + x.size());
    expect_bad(x + global + x + member("d.txt", "data"), SHF_E_AMBIGUOUS,
               here + x.size() + global.size());
    expect_good(x + global + member("d.txt", "data"), "b{txt=data}");
}

TEST(T12LongName, cut_short_is_truncated) {
    const std::string name = std::string(700, 'n') + ".txt";
    const std::string shard =
        member("a.txt", "first") + gnu_name(name) + member("c", "data", Carrier::gnu);
    for (const uint64_t size : {here + 512, here + 513, here + 1100, here + 1217, here + 1535})
        expect_fault(shard.substr(0, size), SHF_E_TRUNCATED, here,
                     options_with({{"end_marker", "optional"}}));
    expect_read(shard + end_marker());
}

TEST(T12LongName, beats_the_prefix) {
    expect_good(pax({{"path", "b.txt"}}) + member({.name = "c", .prefix = "p.q"}, "data"),
                "b{txt=data}");
    expect_good(gnu_name("b.txt") + member({.name = "c", .prefix = "p.q"}, "data"), "b{txt=data}");
}

// ---- T13: sparse members ----------------------------------------------------------------------

struct Sparse {
    const char* encoding;
    std::string (*make)(std::string_view);
};
const Sparse encodings[] = {
    {"old GNU", [](std::string_view name) { return sparse_old_gnu(name); }},
    {"old GNU, one more block of map",
     [](std::string_view name) { return sparse_old_gnu(name, 1); }},
    {"old GNU, three more blocks of map",
     [](std::string_view name) { return sparse_old_gnu(name, 3); }},
    {"pax 0.0", sparse_pax_0_0},
    {"pax 0.1", sparse_pax_0_1},
    {"pax 1.0", sparse_pax_1_0},
};

TEST(T13Sparse, is_unsupported) {
    for (const Sparse& sparse : encodings) {
        SCOPED_TRACE(sparse.encoding);
        const ShardResult result = expect_bad(sparse.make("s.bin"), SHF_E_UNSUPPORTED);
        EXPECT_NE(result.end.text.find("member \"s.bin\""), std::string::npos) << result.end.text;
        EXPECT_EQ(result.stat(SHF_STAT_SPARSE), 1U);
    }
}

// V32: skipped by its physical size, its sample too, and all others whole.
TEST(T13Sparse, between_normal_members) {
    std::string shard;
    uint64_t count = 0;
    std::string expected;
    for (const Sparse& sparse : encodings) {
        const std::string key = numbered("s", count++);
        shard += member("n" + key + ".txt", "normal") + member(key + ".a", "one") +
                 sparse.make(key + ".b") + member(key + ".c", "three");
        expected += "n" + key + "{txt=normal} ";
    }
    const ShardResult result =
        expect_read(shard + member("z.txt", "last") + end_marker(), skipping);
    EXPECT_EQ(listing(result), expected + "z{txt=last}");
    EXPECT_EQ(result.bad_samples.size(), count);
    EXPECT_EQ(result.stat(SHF_STAT_SPARSE), count);
    for (const SeenFault& fault : result.bad_samples) EXPECT_EQ(fault.code, SHF_E_UNSUPPORTED);
}

TEST(T13Sparse, without_key_is_only_counted) {
    for (const Sparse& sparse : encodings) {
        SCOPED_TRACE(sparse.encoding);
        const ShardResult result = expect_good(sparse.make("nokey"), "");
        EXPECT_EQ(result.stat(SHF_STAT_SPARSE), 1U);
        EXPECT_EQ(result.stat(SHF_STAT_IGNORED_MEMBERS), 1U);
    }
}

TEST(T13Sparse, cut_map_is_truncated) {
    const std::string shard = member("a.txt", "first") + sparse_old_gnu("s.bin", 3);
    for (const uint64_t size : {here + 512, here + 513, here + 1024, here + 1600, here + 2047})
        expect_fault(shard.substr(0, size), SHF_E_TRUNCATED, here,
                     options_with({{"end_marker", "optional"}, {"on_error", "skip_sample"}}));
}

// The real name counts, wherever a long made-up one stands (GNU tar writes both).
TEST(T13Sparse, real_name_beats_path) {
    const std::string made_up = "GNUSparseFile.1/" + std::string(90, 'm') + ".x";
    for (const bool path_first : {true, false}) {
        const std::string body = path_first
                                     ? records({{"path", made_up}, {"GNU.sparse.name", "s.bin"}})
                                     : records({{"GNU.sparse.name", "s.bin"}, {"path", made_up}});
        const ShardResult result = expect_bad(
            pax_body(records({{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}}) + body) +
                member("made.up", padded("0\n")),
            SHF_E_UNSUPPORTED);
        EXPECT_NE(result.end.text.find("member \"s.bin\""), std::string::npos) << result.end.text;
    }
}

}  // namespace
}  // namespace shf::test
