// Rules T1 to T6, T14 to T18 and T23 to T25: what a header says. Each rule has an input that breaks
// it and the nearest one that does not. All are read every way: class and offset never depend on
// how bytes arrive.
#include "shard_expect.h"
#include "tar_builder.h"

namespace shf::test {
namespace {

// What is tested stands at byte 1024, between two members.
constexpr uint64_t here = 1024;

std::string between(std::string_view middle) {
    return member("a.txt", "first") + std::string(middle) + member("z.txt", "last") + end_marker();
}

void expect_bad(std::string_view middle, int32_t code, const Options& options = {}) {
    expect_fault(between(middle), code, here, options);
}

// The middle is accepted; `samples` is what it adds.
ShardResult expect_good(std::string_view middle, std::string_view samples,
                        const Options& options = {}) {
    ShardResult result = expect_read(between(middle), options);
    const std::string gap = samples.empty() ? " " : " " + std::string(samples) + " ";
    EXPECT_EQ(listing(result), "a{txt=first}" + gap + "z{txt=last}");
    return result;
}

const Options skipping = options_with({{"on_error", "skip_sample"}});

// ---- T1: the checksum -------------------------------------------------------------------------

TEST(T1Checksum, any_flipped_header_bit_is_format) {
    const std::string good = member("b.txt", "data");
    for (size_t bit = 0; bit < 512 * 8; ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        const ShardResult result = read_shard(between(bad));
        // The checksum does not cover itself: a NUL for a blank makes the same number.
        if (bit / 8 >= checksum_field && bit / 8 < checksum_field + 8 &&
            result.end.code == SHF_OK) {
            ASSERT_EQ(listing(result), "a{txt=first} b{txt=data} z{txt=last}") << "bit " << bit;
            continue;
        }
        ASSERT_EQ(result.end.code, SHF_E_FORMAT) << "bit " << bit;
        ASSERT_EQ(result.end.offset, here) << "bit " << bit;
    }
    std::string bad = good;
    bad[0] = 'c';
    expect_bad(bad, SHF_E_FORMAT);
}

TEST(T1Checksum, no_scan_for_the_next_header) {
    std::string bad = member("b.txt", "data");
    bad[checksum_field] = '7';
    const ShardResult result = expect_fault(between(bad), SHF_E_FORMAT, here, skipping);
    EXPECT_EQ(listing(result), "");  // the sample "a" may have gone on in what was lost
}

TEST(T1Checksum, unsigned_and_signed_sums_hold) {
    std::string block = header({.name = "b\xff\x80.txt", .size = 4});
    expect_good(block + padded("data"), "b\xff\x80{txt=data}");
    ASSERT_NE(header_sum(block), header_sum(block, true));
    reseal(block, 0, true);
    expect_good(block + padded("data"), "b\xff\x80{txt=data}");
    std::string off_by_one = block;
    overwrite(off_by_one, checksum_field,
              octal(static_cast<uint64_t>(header_sum(block, true) + 1), 7) + " ");
    expect_bad(off_by_one + padded("data"), SHF_E_FORMAT);
}

TEST(T1Checksum, forms_of_the_field) {
    const std::string good = member("b.txt", "data");
    const auto sum = static_cast<uint64_t>(header_sum(good));
    const auto sealed = [&](const std::string& field) {
        std::string out = good;
        overwrite(out, checksum_field, field);
        return out;
    };
    const std::string digits = octal(sum, 7).substr(0, 6);
    for (const std::string& field :
         {digits + "\0 "s, digits + " \0"s, "  " + digits, "00" + digits})
        expect_good(sealed(field), "b{txt=data}");
    for (const std::string& field :
         {digits + "\0x"s, digits + "x "s, "x" + digits + " ", zeros(8), std::string(8, ' ')})
        expect_bad(sealed(field), SHF_E_FORMAT);
}

// ---- T2, T3: cuts (every byte of them in truncation_test.cpp) ---------------------------------

TEST(T2CutHeader, is_truncated_at_that_header) {
    const std::string whole = between(member("b.txt", "data"));
    for (const size_t size : {here + 1, here + 511}) {
        expect_fault(whole.substr(0, size), SHF_E_TRUNCATED, here);
        expect_fault(whole.substr(0, size), SHF_E_TRUNCATED, here,
                     options_with({{"end_marker", "optional"}}));
    }
    expect_read(whole);
}

TEST(T3CutData, is_truncated_and_no_partial_sample) {
    const std::string data(1000, 'd');
    const std::string shard = member("a.txt", "first") + member("b.txt", data) + end_marker();
    const uint64_t data_at = here + 512;
    for (const uint64_t size : {data_at, data_at + 1, data_at + 511, data_at + 512, data_at + 999,
                                data_at + 1000, data_at + 1023}) {
        const ShardResult result = expect_fault(shard.substr(0, size), SHF_E_TRUNCATED, here,
                                                options_with({{"end_marker", "optional"}}));
        EXPECT_EQ(listing(result), "a{txt=first}");
    }
    EXPECT_EQ(listing(expect_read(shard.substr(0, data_at + 1024),
                                  options_with({{"end_marker", "optional"}}))),
              "a{txt=first} b{txt=" + data + "}");
}

// CVE-2025-5918: a skip past the end counted as success.
TEST(T3CutData, skipped_member_too) {
    for (const char* name : {"README", "__meta__", ".hidden"}) {
        const std::string shard = between(member(name, std::string(2000, 's')));
        for (const size_t size : {here + 512, here + 600, here + 512 + 2000, here + 512 + 2047})
            expect_fault(shard.substr(0, size), SHF_E_TRUNCATED, here,
                         options_with({{"end_marker", "optional"}}));
        expect_read(shard);
    }
}

// ---- T4, T5, T6: numbers ----------------------------------------------------------------------

// A member header of 4 bytes whose size field is written by hand.
std::string sized(const std::string& field, std::string_view data = "data") {
    return with(header({.name = "b.txt"}), size_field, field) + padded(data);
}

TEST(T4HugeSize, above_the_fixed_bound_is_format) {
    expect_bad(sized(base256((uint64_t{1} << 60) + 1)), SHF_E_FORMAT);
    expect_bad(sized(base256(UINT64_MAX)), SHF_E_FORMAT);
    expect_bad(sized(base256(INT64_MAX)), SHF_E_FORMAT);
    const Options huge =
        options_with({{"max_member", "1EiB"}, {"max_sample", "1EiB"}, {"memory", "16TiB"}});
    // 2^60 is a size like others: more than there is, or than may be held.
    expect_bad(sized(base256(uint64_t{1} << 60)), SHF_E_LIMIT, huge);
    expect_fault(between(pax({{"size", "1152921504606846977"}}) + member("b.txt", "data")),
                 SHF_E_FORMAT, here + 1024);
}

TEST(T4HugeSize, more_than_there_is_takes_no_memory) {
    const std::string shard = between(sized(base256(uint64_t{1} << 32)));
    const Options options = options_with({{"memory", "8GiB"}});
    expect_fault(shard, SHF_E_TRUNCATED, here, options);
    for (const bool size_known : {true, false})
        EXPECT_LE(read_shard(shard, options, {.chunk = 512, .size_known = size_known}).memory_peak,
                  uint64_t{4} << 20)
            << size_known;
}

// Memory follows the bytes that arrived, and the bytes come out whole.
TEST(T4HugeSize, large_member_of_unknown_source) {
    std::string data(40 << 20, '\0');
    for (size_t i = 0; i < data.size(); i += 97) data[i] = static_cast<char>(i >> 8);
    const std::string shard = member("b.txt", data) + member("b.cls", "7") + end_marker();
    const ShardResult whole = read_shard(shard, {}, {.chunk = 65536, .size_known = false});
    ASSERT_EQ(whole.end.code, SHF_OK) << whole.end.text;
    ASSERT_EQ(whole.samples.size(), 1U);
    EXPECT_TRUE(whole.samples[0].fields[0].second == data);
    EXPECT_EQ(whole.samples[0].fields[1].second, "7");
    const std::string_view part = std::string_view(shard).substr(0, 3 << 20);
    const ShardResult cut = read_shard(part, {}, {.chunk = 65536, .size_known = false});
    EXPECT_EQ(cut.end.code, SHF_E_TRUNCATED);
    EXPECT_LE(cut.memory_peak, uint64_t{32} << 20);
}

TEST(T5Numbers, octal_forms) {
    for (const std::string& field :
         {"00000000004\0"s, "00000000004 "s, "           4"s, "000000000004"s,
          "4\0\0\0\0\0\0\0\0\0\0\0"s, " 4          "s, "4 \0 \0 \0 \0 \0 "s.substr(0, 12)})
        expect_good(sized(field), "b{txt=data}");
    for (const std::string& field :
         {"0000000000x\0"s, "00000000008\0"s, "00000000004x"s, "00000000004\x80"s, "00000000 04\0"s,
          "\0000000000004"s, "4\0004\0\0\0\0\0\0\0\0\0"s, "+4         \0"s, "-4         \0"s,
          "0x4        \0"s, "4,         \0"s, "  \0\0\0\0\0\0\0\0\0\0"s, "           \0"s,
          "        \0\0\0\0"s, "\0\0\0\0\0\0\0\0\0\0\0 "s, "\t4         \0"s})
        expect_bad(sized(field.substr(0, 12)), SHF_E_FORMAT);
}

TEST(T5Numbers, all_nul_or_all_blank_is_zero) {
    expect_good(sized(zeros(12), ""), "b{txt=}");
    expect_good(sized(std::string(12, ' '), ""), "b{txt=}");
}

TEST(T5Numbers, base256) {
    expect_good(sized(base256(4)), "b{txt=data}");
    // Bits above the 64 must not vanish, and 0x80 alone marks a positive number.
    for (const size_t byte : {1U, 2U, 3U}) {
        std::string field = base256(4);
        field[byte] = 1;
        expect_bad(sized(field), SHF_E_FORMAT);
    }
    for (const char mark : {'\x81', '\xc0', '\xfe'}) {
        std::string field = base256(4);
        field[0] = mark;
        expect_bad(sized(field), SHF_E_FORMAT);
    }
}

// The fields behind each other: a number that fills its field ends there.
TEST(T5Numbers, never_read_past_the_field) {
    std::string block = header({.name = "b.txt", .size = 4});
    overwrite(block, size_field,
              "000000000004"
              "77777777777\0"s);  // size and mtime
    reseal(block);
    expect_good(block + padded("data"), "b{txt=data}");
}

TEST(T5Numbers, fields_that_nobody_uses_are_not_validated) {
    std::string block = header({.name = "b.txt", .size = 4});
    overwrite(block, 100,
              "xxxxxxxx"
              "\xff\xff\xff\xff\xff\xff\xff\xff"
              "-1      ");
    overwrite(block, 136, "yesterday   ");
    overwrite(block, 265, std::string(80, '\xfe'));  // user and group names, device numbers
    reseal(block);
    expect_good(block + padded("data"), "b{txt=data}");
}

TEST(T6NegativeSize, is_format) {
    expect_bad(sized(std::string(12, '\xff')), SHF_E_FORMAT);  // -1
    expect_bad(sized("\xff" + std::string(10, '\xff') + "\xfc"), SHF_E_FORMAT);
    expect_bad(sized("\xc0" + zeros(11)), SHF_E_FORMAT);
    expect_bad(pax({{"size", "-1"}}) + member("b.txt", "data"), SHF_E_FORMAT);
    // libarchive 2025: a negative size of a label read the same header for ever.
    for (const char type : {'V', 'D', 'L', 'K', 'x', 'g', '5', 'M'}) {
        const Carrier carrier = type == 'x' || type == 'g' ? Carrier::ustar : Carrier::gnu;
        expect_bad(with(header({.name = "b", .type = type, .carrier = carrier}), size_field,
                        std::string(12, '\xff')),
                   SHF_E_FORMAT);
    }
}

// ---- T14, T15, T16: what is no file -----------------------------------------------------------

TEST(T14HardLink, is_skipped_and_counted) {
    const ShardResult result =
        expect_good(header({.name = "b.txt", .type = '1', .link = "a.txt"}), "");
    EXPECT_EQ(result.stat(SHF_STAT_LINKS), 1U);
    expect_bad(member({.name = "b.txt", .type = '1', .link = "a.txt"}, "data"), SHF_E_FORMAT);
}

TEST(T15SymbolicLink, is_skipped_and_counted) {
    const ShardResult result =
        expect_good(header({.name = "b.txt", .type = '2', .link = "/etc/passwd"}), "");
    EXPECT_EQ(result.stat(SHF_STAT_LINKS), 1U);
    expect_bad(member({.name = "b.txt", .type = '2', .link = "a.txt"}, "data"), SHF_E_FORMAT);
}

TEST(T16Special, is_skipped_and_counted) {
    for (const char type : {'3', '4', '6'}) {
        const ShardResult result = expect_good(header({.name = "b.txt", .type = type}), "");
        EXPECT_EQ(result.stat(SHF_STAT_SPECIALS), 1U);
        expect_bad(member({.name = "b.txt", .type = type}, "data"), SHF_E_FORMAT);
    }
}

TEST(T16Special, directory_is_skipped_and_counted) {
    for (const Carrier carrier : {Carrier::v7, Carrier::ustar, Carrier::gnu}) {
        const ShardResult result =
            expect_good(header({.name = "b.d/", .type = '5', .carrier = carrier}), "");
        EXPECT_EQ(result.stat(SHF_STAT_DIRECTORIES), 1U);
        expect_bad(member({.name = "b.d/", .type = '5', .carrier = carrier}, "data"), SHF_E_FORMAT);
    }
}

// Links and devices inside a sample do not end it.
TEST(T16Special, does_not_break_a_sample) {
    const ShardResult result =
        expect_good(member("b.x", "1") + header({.name = "b.l", .type = '2', .link = "b.x"}) +
                        header({.name = "dir.d/", .type = '5'}) + member("b.y", "2"),
                    "b{x=1 y=2}");
    EXPECT_EQ(result.stat(SHF_STAT_LINKS), 1U);
    EXPECT_EQ(result.stat(SHF_STAT_DIRECTORIES), 1U);
}

// ---- T17, T18: names --------------------------------------------------------------------------

TEST(T17Names, are_keys_and_not_paths) {
    for (const char* key : {"/b", "../b", "../../b", "a/../b", "./b", "C:\\b", "\\\\host\\b", "~/b",
                            "b//c", "NUL", "a b"})
        expect_good(member(std::string(key) + ".txt", "data"), std::string(key) + "{txt=data}");
}

TEST(T18NameBytes, all_but_nul_are_legal) {
    for (const char* key :
         {"b\n", "\x1b[2J", "b\x7f", "\xff\xfe", "\xc3", "\xed\xa0\x80", "\"b\"", "\xc2\x9b"}) {
        const std::string name = std::string(key) + ".txt";
        const std::string sample = std::string(key) + "{txt=data}";
        expect_good(member(name, "data"), sample);
        expect_good(gnu_name(name) + member("x", "data", Carrier::gnu), sample);
        expect_good(pax({{"path", name}}) + member("x", "data"), sample);
    }
    expect_bad(pax({{"path", "b\0c.txt"s}}) + member("b.txt", "data"), SHF_E_FORMAT);
}

TEST(T18NameBytes, messages_have_no_control_bytes) {
    std::string name;
    for (int byte = 1; byte < 256; ++byte) name += static_cast<char>(byte);
    name += "\x1b]0;title\x07.txt";
    const ShardResult result =
        expect_fault(between(pax({{"path", name}}) + member("x", std::string(100, 'd'))),
                     SHF_E_LIMIT, here, options_with({{"max_member", "99"}}));
    for (const char c : result.end.text) {
        const auto byte = static_cast<unsigned char>(c);
        EXPECT_TRUE(byte >= 0x20 && byte != 0x7f) << static_cast<int>(byte);
    }
}

// "The name field of a ustar header ends at its first NUL": what follows is not part of the name.
TEST(T18NameBytes, nul_ends_the_name_field) {
    expect_good(with(header({.name = "b.txt", .size = 4}), 6, "junk") + padded("data"),
                "b{txt=data}");
    const std::string full(100 - 4, 'n');
    expect_good(member(full + ".txt", "data"), full + "{txt=data}");
}

// ---- T23: carriers ----------------------------------------------------------------------------

TEST(T23Carrier, all_three_are_read) {
    for (const Carrier carrier : {Carrier::v7, Carrier::ustar, Carrier::gnu})
        for (const char type : {'0', '\0', '7'})
            expect_good(member({.name = "b.txt", .type = type, .carrier = carrier}, "data"),
                        "b{txt=data}");
}

TEST(T23Carrier, unknown_magic_is_ambiguous) {
    const std::string good = header({.name = "b.txt", .size = 4});
    for (const std::string& magic : {"ustar\0\0\0"s, "ustar\0  "s,
                                     "ustar\0"
                                     "01"s,
                                     "ustar\0"
                                     "0\0"s,
                                     "ustar   "s, "ustar 00"s,
                                     "ustar\0"
                                     " \0"s})
        expect_bad(with(good, magic_field, magic) + padded("data"), SHF_E_AMBIGUOUS);
    for (const std::string& magic : {"ustar\0"
                                     "00"s,
                                     "ustar  \0"s, zeros(8)})
        expect_good(with(good, magic_field, magic) + padded("data"), "b{txt=data}");
}

TEST(T23Carrier, prefix_counts_under_ustar_only) {
    const Header h = {.name = "b.txt", .prefix = "some/dir.d"};
    Header v7 = h, gnu = h;
    v7.carrier = Carrier::v7;
    gnu.carrier = Carrier::gnu;
    expect_good(member(h, "data"), "some/dir.d/b{txt=data}");
    expect_good(member(v7, "data"), "b{txt=data}");
    expect_good(member(gnu, "data"), "b{txt=data}");
}

TEST(T23Carrier, full_prefix) {
    const std::string prefix(155, 'p'), name(96, 'n');
    expect_good(member({.name = name + ".txt", .prefix = prefix}, "data"),
                prefix + "/" + name + "{txt=data}");
}

TEST(T23Carrier, meta_types_need_their_own) {
    for (const Carrier carrier : {Carrier::v7, Carrier::gnu})
        for (const char type : {'x', 'g', 'X'})
            expect_bad(pax_body(record("comment", "c"), type, carrier) + member("b.txt", "data"),
                       SHF_E_FORMAT);
    for (const Carrier carrier : {Carrier::v7, Carrier::ustar})
        for (const char type : {'L', 'K'})
            expect_bad(gnu_long("b.txt", type, carrier) + member("c.txt", "data"), SHF_E_FORMAT);
    // The map of an old sparse member lies where ustar has the prefix.
    for (const Carrier carrier : {Carrier::v7, Carrier::ustar})
        expect_bad(member({.name = "b.txt", .type = 'S', .carrier = carrier}, "data"),
                   SHF_E_FORMAT);
    expect_good(pax({{"comment", "c"}}) + member("b.txt", "data"), "b{txt=data}");
    expect_good(pax({{"comment", "c"}}, 'X') + member("b.txt", "data"), "b{txt=data}");
    expect_good(gnu_long("b.txt") + member("c", "data", Carrier::gnu), "b{txt=data}");
}

TEST(T23Carrier, v7_directory_ends_in_a_slash) {
    const ShardResult result =
        expect_good(header({.name = "b.d/", .type = '\0', .carrier = Carrier::v7}), "");
    EXPECT_EQ(result.stat(SHF_STAT_DIRECTORIES), 1U);
    for (const char type : {'\0', '0'})
        expect_bad(member({.name = "b.d/", .type = type, .carrier = Carrier::v7}, "data"),
                   SHF_E_FORMAT);
}

TEST(T23Carrier, unknown_type_is_skipped_and_counted) {
    for (const char type : {'8', '9', 'B', 'Z', 'a', 'z', ' ', '\x01', '\xff'}) {
        const ShardResult result =
            expect_good(member({.name = "b.txt", .type = type}, std::string(700, 'u')), "");
        EXPECT_EQ(result.stat(SHF_STAT_UNKNOWN_TYPES), 1U);
        expect_fault(between(member({.name = "b.txt", .type = type}, std::string(700, 'u')))
                         .substr(0, here + 1000),
                     SHF_E_TRUNCATED, here);
    }
}

// ---- T24: no tar at all -----------------------------------------------------------------------

TEST(T24NotATar, says_what_it_looks_like) {
    struct Case {
        std::string bytes;
        const char* says;
    };
    const Case cases[] = {
        {"<!DOCTYPE html><html>login</html>", "an HTML or XML page"},
        {"\n <?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
         "an HTML or XML page"},
        {"{\"error\": \"no such bucket\"}", "JSON"},
        {"\x5d\x00\x00\x80\x00"s + zeros(8), ".lzma"},
        {"plain text", "not a tar file"},
        {std::string(100, '\0'), "not a tar file"},
        {"\x1b[2Jescape", "not a tar file"},
    };
    for (const Case& c : cases)
        for (const size_t size : {c.bytes.size(), size_t{511}, size_t{512}, size_t{5000}}) {
            if (size < c.bytes.size() || (c.bytes[0] == '\0' && size >= 512)) continue;
            std::string bytes = c.bytes;
            bytes.resize(size, c.bytes[0] == '\0' ? '\0' : ' ');
            const ShardResult result = expect_fault(bytes, SHF_E_FORMAT, 0);
            EXPECT_NE(result.end.text.find(c.says), std::string::npos) << result.end.text;
            EXPECT_NE(result.end.text.find("the first bytes are \"" + escape(bytes.substr(0, 16))),
                      std::string::npos)
                << result.end.text;
            EXPECT_EQ(result.end.text.find('\x1b'), std::string::npos);
        }
}

TEST(T24NotATar, nothing_is_truncated) {
    expect_fault("", SHF_E_TRUNCATED, 0);
    expect_fault("", SHF_E_TRUNCATED, 0,
                 options_with({{"allow_empty", "true"}, {"end_marker", "optional"}}));
}

// Shorter than one block, but its magic is that of a tar.
TEST(T24NotATar, cut_inside_the_first_header) {
    for (const Carrier carrier : {Carrier::ustar, Carrier::gnu}) {
        const std::string block = member("a.txt", "first", carrier);
        expect_fault(block.substr(0, 511), SHF_E_TRUNCATED, 0);
        expect_fault(block.substr(0, 265), SHF_E_TRUNCATED, 0);
        expect_fault(block.substr(0, 256), SHF_E_FORMAT, 0);
    }
}

TEST(T24NotATar, only_zero_blocks_is_an_empty_shard) {
    const Options empty = options_with({{"allow_empty", "true"}});
    for (const size_t blocks : {2U, 3U, 20U}) {
        const ShardResult refused = expect_fault(zeros(512 * blocks), SHF_E_FORMAT, no_offset);
        EXPECT_NE(refused.end.text.find("allow_empty"), std::string::npos) << refused.end.text;
        EXPECT_EQ(expect_read(zeros(512 * blocks), empty).stat(SHF_STAT_EMPTY_SHARDS), 1U);
    }
    expect_fault(zeros(512), SHF_E_TRUNCATED, 0, empty);
}

// "0 entries, success" for members that are all skipped must be impossible, too.
TEST(T24NotATar, members_without_samples_are_an_empty_shard) {
    const std::string shard = member("README", "no key") + header({.name = "d/", .type = '5'}) +
                              header({.name = "l.txt", .type = '2', .link = "README"}) +
                              end_marker();
    expect_fault(shard, SHF_E_FORMAT, no_offset);
    const ShardResult result = expect_read(shard, options_with({{"allow_empty", "true"}}));
    EXPECT_EQ(result.stat(SHF_STAT_EMPTY_SHARDS), 1U);
    EXPECT_EQ(result.stat(SHF_STAT_IGNORED_MEMBERS), 1U);
}

// ---- T25: GNU and Solaris specialities --------------------------------------------------------

TEST(T25Specialities, label_and_dump_are_skipped) {
    for (const char type : {'V', 'D', 'A'}) {
        const ShardResult result = expect_good(
            member({.name = "b.txt", .type = type, .carrier = Carrier::gnu}, "YNb\0NNc\0\0"s), "");
        EXPECT_EQ(result.stat(SHF_STAT_SPECIALS), 1U);
        // Its size is checked like any other.
        expect_bad(with(header({.name = "b.txt", .type = type, .carrier = Carrier::gnu}),
                        size_field, base256(uint64_t{1} << 61)),
                   SHF_E_FORMAT);
        expect_bad(header({.name = "b", .type = type, .size = 5000, .carrier = Carrier::gnu}),
                   SHF_E_TRUNCATED);
    }
}

TEST(T25Specialities, multi_volume_is_unsupported) {
    const std::string piece =
        member({.name = "b.bin", .type = 'M', .carrier = Carrier::gnu}, std::string(600, 'm'));
    expect_bad(piece, SHF_E_UNSUPPORTED);
    const ShardResult result = expect_good(piece, "", skipping);
    ASSERT_EQ(result.bad_samples.size(), 1U);
    EXPECT_EQ(result.bad_samples[0].code, SHF_E_UNSUPPORTED);
    EXPECT_EQ(result.bad_samples[0].offset, here);
    EXPECT_EQ(result.bad_samples[0].after, 1U);
}

TEST(T25Specialities, solaris_header_is_pax_on_ustar) {
    expect_good(pax({{"path", "b.txt"}}, 'X') + member("c.txt", "data"), "b{txt=data}");
    expect_bad(pax_body("junk", 'X') + member("c.txt", "data"), SHF_E_FORMAT);
}

}  // namespace
}  // namespace shf::test
