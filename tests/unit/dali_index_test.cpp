// Index files of DALI's webdataset reader. What is expected was written by hand, from DALI's
// documentation of the format and of wds2idx.
#include "index_folder.h"

namespace shf::test {
namespace {

using Keys = std::vector<std::string>;

// Three members, two samples.
std::string small_shard() {
    return member("a/0001.jpg", "12345") +  // header at 0, data at 512
           member("a/0001.Cls", "7") +      // 1024, 1536
           member("a/0002.seg.png", "") +   // 2048, 2560
           end_marker();
}
constexpr std::string_view small_v1_2 =
    "v1.2 2\n"
    "jpg 512 5 a/0001.jpg Cls 1536 1 a/0001.Cls\n"
    "seg.png 2560 0 a/0002.seg.png\n";
constexpr std::string_view small_v1_1 =
    "v1.1 2\n"
    "jpg 512 5 Cls 1536 1\n"
    "seg.png 2560 0\n";

constexpr std::string_view small_v1_0 =
    "v1.0 2\n"
    "jpg 5 512 Cls 1 1536\n"
    "seg.png 0 2560\n";

TEST(DaliIndex, is_written_as_wds2idx_writes_it) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    const Outcome newest = folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "s.idx");
    ASSERT_EQ(newest.code, SHF_OK) << newest;
    EXPECT_EQ(folder.bytes_of("s.idx"), small_v1_2);
    const Outcome older = folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_1, "s.idx");
    ASSERT_EQ(older.code, SHF_OK) << older;
    EXPECT_EQ(folder.bytes_of("s.idx"), small_v1_1);
    const Outcome oldest = folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_0, "s.idx");
    ASSERT_EQ(oldest.code, SHF_OK) << oldest;
    EXPECT_EQ(folder.bytes_of("s.idx"), small_v1_0);
    EXPECT_EQ(folder.count(), 2U);  // no half-written file is left
}

TEST(DaliIndex, has_the_offset_of_the_data_behind_long_names) {
    const std::string name = std::string(120, 'n') + ".jpg";
    const IndexFolder folder;
    folder.write("gnu.tar", gnu_name(name) + member(name.substr(0, 100), "12345", Carrier::gnu) +
                                end_marker());
    folder.write("pax.tar", pax({{"path", name}}) + member("short.jpg", "12345") + end_marker());
    const std::string right = "v1.2 1\njpg 1536 5 " + name + "\n";
    for (const char* shard : {"gnu.tar", "pax.tar"}) {
        const Outcome outcome = folder.write_index({shard}, SHF_INDEX_DALI_1_2, "s.idx");
        ASSERT_EQ(outcome.code, SHF_OK) << outcome;
        EXPECT_EQ(folder.bytes_of("s.idx"), right) << shard;
        EXPECT_EQ(folder.read_bytes(shard, SHF_INDEX_DALI_1_2, right).code, SHF_OK) << shard;
    }
    // wds2idx gives the offset of the name.
    expect_refused(
        folder.read_bytes("gnu.tar", SHF_INDEX_DALI_1_2, "v1.2 1\njpg 512 5 " + name + "\n"),
        SHF_E_FORMAT, {"line 2", "sample 0", "offset 512", "1536", "GNU long names"});
}

// wds2idx passes over directories and hidden files, and keeps metadata and files without a dot.
TEST(DaliIndex, has_the_samples_that_wds2idx_sees) {
    const IndexFolder folder;
    folder.write("s.tar", header({.name = "d/", .type = '5'}) +  // 0
                              member(".hid", "h") +              // 512
                              member("d/a.jpg", "1") +           // 1536
                              member("d/._a.jpg", "h") +         // 2560
                              member("d/a.txt", "22") +          // 3584
                              member("__meta__/z.json", "{}") +  // 4608
                              member("README", "read") +         // 5632
                              member("__dir__/x.y", "m") +       // 6656
                              member("d/b.jpg", "3") +           // 7680
                              end_marker());
    const std::string theirs =
        "v1.2 5\n"
        "jpg 2048 1 d/a.jpg txt 4096 2 d/a.txt\n"
        "json 5120 2 __meta__/z.json\n"
        "README 6144 4 README\n"
        "y 7168 1 __dir__/x.y\n"
        "jpg 8192 1 d/b.jpg\n";
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "s.idx");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.idx"), theirs);

    const std::string ours =
        "v1.2 2\n"
        "jpg 2048 1 d/a.jpg txt 4096 2 d/a.txt\n"
        "jpg 8192 1 d/b.jpg\n";
    for (const std::string& text : {theirs, ours}) {
        const Outcome taken = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_2, text);
        EXPECT_EQ(taken.code, SHF_OK) << taken;
        EXPECT_EQ(indexed_keys(folder / "s.tar"), (Keys{"d/a", "d/b"}));
        folder.remove("s.tar.sfidx");
    }
    // Neither the one nor the other.
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_2,
                                     "v1.2 3\n"
                                     "jpg 2048 1 d/a.jpg txt 4096 2 d/a.txt\n"
                                     "json 5120 2 __meta__/z.json\n"
                                     "jpg 8192 1 d/b.jpg\n"),
                   SHF_E_FORMAT, {"line 4", "sample 2"});
}

// A file without a dot ends a sample there.
TEST(DaliIndex, may_see_two_samples_where_we_see_one) {
    const IndexFolder folder;
    folder.write("s.tar",
                 member("a.jpg", "1") + member("README", "") + member("a.txt", "2") + end_marker());
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_1, "s.idx");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.idx"), "v1.1 3\njpg 512 1\nREADME 1536 0\ntxt 2048 1\n");
    EXPECT_EQ(folder.read_index("s.tar", SHF_INDEX_DALI_1_1, "s.idx").code, SHF_OK);
    EXPECT_EQ(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_1, "v1.1 1\njpg 512 1 txt 2048 1\n").code,
              SHF_OK);
}

TEST(DaliIndex, cannot_hold_every_name) {
    const IndexFolder folder;
    for (const char* name : {"a b.jpg", "a\tb.jpg", "a\nb.jpg", "d e/a.jpg", "a.j pg"}) {
        folder.write("s.tar", member(name, "1") + end_marker());
        expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "s.idx"),
                       SHF_E_UNSUPPORTED, {"blanks"});
    }
    // Without names, blanks in extensions alone do harm.
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_1, "s.idx"), SHF_E_UNSUPPORTED,
                   {"blanks", "a.j pg"});
    folder.write("s.tar", member("a b.jpg", "1") + end_marker());
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_1, "v1.1.idx");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("v1.1.idx"), "v1.1 1\njpg 512 1\n");
    folder.write("s.tar", member("a.", "1") + end_marker());
    for (const int32_t version : {SHF_INDEX_DALI_1_0, SHF_INDEX_DALI_1_1, SHF_INDEX_DALI_1_2})
        expect_refused(folder.write_index({"s.tar"}, version, "s.idx"), SHF_E_UNSUPPORTED,
                       {"after its dot"});
    EXPECT_FALSE(folder.has("s.idx"));
}

TEST(DaliIndex, gives_the_index_of_the_shard_when_it_is_taken_over) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    const std::string right = folder.built("s.tar");
    for (const std::string_view text : {small_v1_2, small_v1_1, small_v1_0}) {
        // The file says its version; what was asked for does not matter.
        const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_0, text);
        EXPECT_EQ(outcome.code, SHF_OK) << outcome;
        EXPECT_EQ(folder.bytes_of("s.tar.sfidx"), right);
        EXPECT_EQ(indexed_keys(folder / "s.tar"), (Keys{"a/0001", "a/0002"}));
        folder.remove("s.tar.sfidx");
    }
    std::filesystem::create_directory(folder / "indexes");
    const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_2, small_v1_2,
                                              {{"index_dir", folder / "indexes"}});
    EXPECT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_FALSE(folder.has("s.tar.sfidx"));
    EXPECT_FALSE(std::filesystem::is_empty(folder / "indexes"));
}

TEST(DaliIndex, goes_out_and_comes_back_in_every_version) {
    const IndexFolder folder;
    const std::string long_name = std::string(120, 'n') + ".jpg";
    folder.write("s.tar", member("512.bin", std::string(512, 'x')) +  // size and offset alike
                              member("512.x", "") + gnu_name(long_name) +
                              member(long_name.substr(0, 100), "1", Carrier::gnu) + end_marker());
    const std::string right = folder.built("s.tar");
    for (const int32_t version : {SHF_INDEX_DALI_1_0, SHF_INDEX_DALI_1_1, SHF_INDEX_DALI_1_2}) {
        const Outcome written = folder.write_index({"s.tar"}, version, "s.idx");
        ASSERT_EQ(written.code, SHF_OK) << written;
        const Outcome taken = folder.read_index("s.tar", version, "s.idx");
        EXPECT_EQ(taken.code, SHF_OK) << taken;
        EXPECT_EQ(folder.bytes_of("s.tar.sfidx"), right);
        folder.remove("s.tar.sfidx");
    }
}

TEST(DaliIndex, may_be_lower_cased_and_have_other_blanks) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    for (const std::string_view text :
         {"v1.1 2\njpg 512 5 cls 1536 1\nseg.png 2560 0\n",
          "v1.1  2 \r\n jpg 512\t5 Cls  1536 1\r\nseg.png 2560 0\r\n\r\n",
          "v1.1 2\njpg 512 5 Cls 1536 1\nseg.png 2560 0"}) {
        const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_1, text);
        EXPECT_EQ(outcome.code, SHF_OK) << outcome;
    }
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_1,
                                     "v1.1 2\nJPG 512 5 Cls 1536 1\nseg.png 2560 0\n"),
                   SHF_E_FORMAT, {"\"JPG\"", "\"jpg\""});
}

// What wds2idx gets from GNU tar in the locale C, or of a backslash in any locale.
TEST(DaliIndex, may_have_names_as_gnu_tar_prints_them) {
    const IndexFolder folder;
    folder.write("s.tar", member("\xc3\xa9.\xc3\xa9", "12345") + member("b\\n.x", "1") +
                              member("t\t\x7f\x01.x", "") + end_marker());
    const std::string right = folder.built("s.tar");
    for (const std::string_view text :
         {R"(v1.2 3
\303\251 512 5 \303\251.\303\251
x 1536 1 b\\n.x
x 2560 0 t\t\177\001.x
)",
          "v1.2 3\n\xc3\xa9 512 5 \xc3\xa9.\xc3\xa9\nx 1536 1 b\\n.x\nx 2560 0 "
          "t\\t\x7f\x01.x\n"}) {
        const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_2, text);
        EXPECT_EQ(outcome.code, SHF_OK) << outcome;
        EXPECT_EQ(folder.bytes_of("s.tar.sfidx"), right);
        folder.remove("s.tar.sfidx");
    }
    for (const std::string_view name : {R"(\303\250.\303\251)", R"(\503\251.\303\251)",
                                        R"(\303\25.\303\251)", R"(\x.\303\251)", R"(\)"})
        expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_2,
                                         "v1.2 3\n\\303\\251 512 5 " + std::string(name) +
                                             "\nx 1536 1 b\\\\n.x\nx 2560 0 t\\t\\177\\001.x\n"),
                       SHF_E_FORMAT, {"line 2", "has the name"});
}

// Two layouts go under that version; the shard tells which one it is.
TEST(DaliIndex, of_version_1_0_is_read_when_it_fits_the_shard) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    for (const std::string_view text :
         {"v1.0 2\njpg 5 512 Cls 1 1536\nseg.png 0 2560\n",
          "v1.0 2\njpg 512 5 a/0001.jpg Cls 1536 1 a/0001.Cls\nseg.png 2560 0 a/0002.seg.png\n",
          "v1.0 2\njpg 512 5 Cls 1536 1\nseg.png 2560 0\n"}) {
        const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_0, text);
        EXPECT_EQ(outcome.code, SHF_OK) << outcome;
    }
    // One layout, then another.
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_0,
                                     "v1.0 2\njpg 5 512 Cls 1 1536\nseg.png 2560 0\n"),
                   SHF_E_FORMAT, {"line 3", "offset 0", "2560"});
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_0,
                                     "v1.0 2\njpg 5 512 Cls 1536 1\nseg.png 0 2560\n"),
                   SHF_E_FORMAT, {"line 2"});
    // Size before offset means v1.0 alone.
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_1,
                                     "v1.1 2\njpg 5 512 Cls 1 1536\nseg.png 0 2560\n"),
                   SHF_E_FORMAT, {"offset 5", "512"});
}

TEST(DaliIndex, that_lies_is_refused) {
    struct Lie {
        std::string_view text;
        int32_t code;
        std::vector<std::string> words;
    };
    const std::vector<Lie> lies = {
        {"v1.1 2\njpg 1024 5 Cls 1536 1\nseg.png 2560 0\n",
         SHF_E_FORMAT,
         {"line 2", "sample 0", "offset 1024", "has 512", "a/0001.jpg"}},
        {"v1.1 2\njpg 512 5 Cls 1536 2\nseg.png 2560 0\n",
         SHF_E_FORMAT,
         {"line 2", "sample 0", "size 2", "has 1"}},
        {"v1.1 2\njpg 512 5 cl 1536 1\nseg.png 2560 0\n", SHF_E_FORMAT, {"\"cl\"", "\"Cls\""}},
        {"v1.1 2\njpg 512 5 Cls 1536 1\nseg.png 2560 1\n", SHF_E_FORMAT, {"line 3", "sample 1"}},
        {"v1.1 2\njpg 512 5\nseg.png 2560 0\n", SHF_E_FORMAT, {"lacks member", "a/0001.Cls"}},
        {"v1.1 2\njpg 512 5 Cls 1536 1 x 1 1\nseg.png 2560 0\n",
         SHF_E_FORMAT,
         {"more members than the 2"}},
        {"v1.1 1\njpg 512 5 Cls 1536 1\n", SHF_E_CHANGED, {"1 sample,", "2"}},
        {"v1.1 3\njpg 512 5 Cls 1536 1\nseg.png 2560 0\njpg 4096 1\n",
         SHF_E_CHANGED,
         {"3 samples", "2"}},
        {"v1.1 2\nseg.png 2560 0\njpg 512 5 Cls 1536 1\n", SHF_E_FORMAT, {"line 2"}},
        {"v1.1 2\njpg 512 5\nCls 1536 1 seg.png 2560 0\n", SHF_E_FORMAT, {"line 2"}},
        {"v1.2 2\njpg 512 5 a/0001.jpg Cls 1536 1 a/0002.Cls\nseg.png 2560 0 a/0002.seg.png\n",
         SHF_E_FORMAT,
         {"a/0002.Cls", "a/0001.Cls"}},
    };
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    for (const Lie& lie : lies) {
        const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_DALI_1_2, lie.text);
        expect_refused(outcome, lie.code, lie.words);
        expect_refused(outcome, lie.code, {"s.tar", "given.idx", "help: "});
        EXPECT_FALSE(folder.has("s.tar.sfidx"));
    }
}

TEST(DaliIndex, that_is_malformed_is_refused) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    for (const std::string_view text :
         {"", "\n", "v1.1\n", "v1.1 0\n", "v1.1 -2\n", "v1.1 two\n", "v1.1 2 3\n", "1.1 2\n",
          "v1.1 2\n", "v1.1 2\njpg 512 5 Cls 1536 1\n", "v1.1 18446744073709551616\n",
          "v1.1 2\njpg 512 Cls 1536 1\nseg.png 2560 0\n",
          "v1.1 2\njpg +512 5 Cls 1536 1\nseg.png 2560 0\n",
          "v1.1 2\njpg 0x200 5 Cls 1536 1\nseg.png 2560 0\n",
          "v1.1 2\njpg 512.0 5 Cls 1536 1\nseg.png 2560 0\n", "v1.1 2\n\nseg.png 2560 0\n",
          "v1.1 1\njpg 512 5 Cls 1536 1\nseg.png 2560 0\n",
          "v1.1 9999999999999\njpg 512 5 Cls 1536 1\nseg.png 2560 0\n"})
        expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_1, text), SHF_E_FORMAT,
                       {"given.idx"});
    for (const std::string_view text : {"v1.3 2\n", "v2.0 2\n", "v1.1.1 2\n"})
        expect_refused(folder.read_bytes("s.tar", SHF_INDEX_DALI_1_1, text), SHF_E_UNSUPPORTED,
                       {"version"});
    EXPECT_FALSE(folder.has("s.tar.sfidx"));
}

TEST(DaliIndex, that_is_damaged_never_gives_another_index) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    for (const std::string_view text : {small_v1_2, small_v1_1, small_v1_0})
        folder.expect_no_damage("s.tar", SHF_INDEX_DALI_1_2, text);
}

TEST(DaliIndex, is_of_one_plain_tar) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    folder.write("s.tar.gz", "\x1f\x8b\x08" + zeros(100));
    folder.write("empty.tar", end_marker());
    for (const int32_t version : {SHF_INDEX_DALI_1_0, SHF_INDEX_DALI_1_1, SHF_INDEX_DALI_1_2}) {
        expect_refused(folder.write_index({"s.tar", "s.tar"}, version, "s.idx"), SHF_E_USAGE,
                       {"one shard, not of 2"});
        expect_refused(folder.write_index({"{s,t}.tar"}, version, "s.idx"), SHF_E_USAGE, {"2"});
        expect_refused(folder.write_index({}, version, "s.idx"), SHF_E_USAGE, {"0"});
        expect_refused(folder.write_index({"s.tar.gz"}, version, "s.idx"), SHF_E_UNSUPPORTED,
                       {"not compressed"});
        expect_refused(folder.write_index({"empty.tar"}, version, "s.idx"), SHF_E_FORMAT,
                       {"empty shard"});
        expect_refused(
            folder.write_index({"empty.tar"}, version, "s.idx", {{"allow_empty", "true"}}),
            SHF_E_UNSUPPORTED, {"without samples"});
        expect_refused(folder.write_index({"none.tar"}, version, "s.idx"), SHF_E_IO, {"none.tar"});
        expect_refused(folder.read_index("s.tar", version, "none.idx"), SHF_E_IO, {"none.idx"});
        expect_refused(folder.read_index("", version, "s.idx"), SHF_E_USAGE, {"url is NULL"});
    }
    EXPECT_FALSE(folder.has("s.idx"));
}

TEST(DaliIndex, of_a_zip_file_is_unsupported) {
    const IndexFolder folder;
    folder.write("s.zip", "PK\5\6" + zeros(18));
    expect_refused(
        folder.write_index({"s.zip"}, SHF_INDEX_DALI_1_2, "s.idx", {{"allow_empty", "true"}}),
        SHF_E_UNSUPPORTED, {"ZIP"});
    expect_refused(
        folder.read_bytes("s.zip", SHF_INDEX_DALI_1_2, small_v1_2, {{"allow_empty", "true"}}),
        SHF_E_UNSUPPORTED, {"ZIP"});
}

TEST(DaliIndex, leaves_a_file_that_is_there_when_it_cannot_be_made) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard() + "junk");
    folder.write("s.idx", "before");
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "s.idx"), SHF_E_FORMAT);
    EXPECT_EQ(folder.bytes_of("s.idx"), "before");
    folder.write("s.tar", small_shard());
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "s.tar"), SHF_E_USAGE,
                   {"take the place of the shard"});
    EXPECT_TRUE(folder.bytes_of("s.tar") == small_shard());
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "none/s.idx"), SHF_E_IO,
                   {"none/s.idx"});
    EXPECT_EQ(folder.count(), 2U);
}

TEST(DaliIndex, of_a_shard_with_a_sparse_file_is_not_written) {
    const IndexFolder folder;
    folder.write("s.tar", member("a.jpg", "1") + sparse_old_gnu("README") + end_marker());
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_DALI_1_2, "s.idx"), SHF_E_UNSUPPORTED,
                   {"sparse", "README"});
}

TEST(IndexCalls, check_their_arguments) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    const std::string shard = folder / "s.tar", path = folder / "s.idx";
    const char* urls[] = {shard.c_str()};
    shf_error error = {};
    for (const int32_t format : {-1, 5, INT32_MAX, INT32_MIN}) {
        EXPECT_EQ(shf_index_export(urls, 1, format, path.c_str(), nullptr, &error), SHF_E_USAGE);
        EXPECT_EQ(shf_index_import(urls[0], format, path.c_str(), nullptr, nullptr), SHF_E_USAGE);
    }
    EXPECT_EQ(shf_index_export(nullptr, 1, SHF_INDEX_DALI_1_2, path.c_str(), nullptr, nullptr),
              SHF_E_USAGE);
    for (const char* none : {static_cast<const char*>(nullptr), ""}) {
        EXPECT_EQ(shf_index_export(urls, 1, SHF_INDEX_DALI_1_2, none, nullptr, nullptr),
                  SHF_E_USAGE);
        EXPECT_EQ(shf_index_import(urls[0], SHF_INDEX_DALI_1_2, none, nullptr, nullptr),
                  SHF_E_USAGE);
    }
    EXPECT_EQ(shf_index_import(urls[0], SHF_INDEX_WIDS, path.c_str(), nullptr, nullptr),
              SHF_E_USAGE);
    EXPECT_EQ(shf_index_export(urls, 1, SHF_INDEX_DALI_1_2, path.c_str(), nullptr, nullptr),
              SHF_OK);
}

}  // namespace
}  // namespace shf::test
