// SHARD.tar.idx of Megatron-Energon, whose numbers are written by hand here.
#include "index_folder.h"

#include <initializer_list>

namespace shf::test {
namespace {

using Keys = std::vector<std::string>;

std::string numbers(std::initializer_list<uint64_t> list) {
    std::string bytes;
    for (uint64_t number : list)
        for (int i = 0; i < 8; ++i, number >>= 8) bytes += static_cast<char>(number & 255);
    return bytes;
}

// Two samples.
std::string small_shard() {
    return member("0001.jpg", "12345") +  // 0
           member("0001.cls", "") +       // 1024
           member("0002.jpg", "1") +      // 1536
           end_marker();                  // 2560
}

TEST(EnergonIndex, has_where_samples_start_and_the_end) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.tar.idx");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.tar.idx"), numbers({0, 1536, 2560}));
    EXPECT_EQ(folder.count(), 2U);
    const std::string right = folder.built("s.tar");
    const Outcome taken = folder.read_index("s.tar", SHF_INDEX_ENERGON, "s.tar.idx");
    EXPECT_EQ(taken.code, SHF_OK) << taken;
    EXPECT_EQ(folder.bytes_of("s.tar.sfidx"), right);
    EXPECT_EQ(indexed_keys(folder / "s.tar"), (Keys{"0001", "0002"}));
}

TEST(EnergonIndex, counts_from_the_extended_header) {
    const std::string name = std::string(120, 'n') + ".jpg";
    const IndexFolder folder;
    folder.write("gnu.tar", member("a.jpg", "1") + gnu_name(name) +
                                member(name.substr(0, 100), "12345", Carrier::gnu) + end_marker());
    folder.write("pax.tar", member("a.jpg", "1") + pax({{"path", name}}) +
                                member("short.jpg", "12345") + end_marker());
    for (const char* shard : {"gnu.tar", "pax.tar"}) {
        const Outcome outcome = folder.write_index({shard}, SHF_INDEX_ENERGON, "s.idx");
        ASSERT_EQ(outcome.code, SHF_OK) << outcome;
        EXPECT_EQ(folder.bytes_of("s.idx"), numbers({0, 1024, 3072})) << shard;
    }
    expect_refused(folder.read_bytes("pax.tar", SHF_INDEX_ENERGON, numbers({0, 2048, 3072})),
                   SHF_E_FORMAT, {"sample 1", "byte 2048", "byte 1024"});
}

// What is not counted lies in the span of the sample before, or before the first one.
TEST(EnergonIndex, passes_over_what_energon_does_not_count) {
    const IndexFolder folder;
    folder.write("s.tar", header({.name = "d/", .type = '5'}) +  // 0
                              member("__meta__/x.json", "{}") +  // 512
                              member("d/a.jpg", "1") +           // 1536
                              member("README", "") +             // 2560
                              member(".hid", "") +               // 3072
                              member("d.1/.hid", "") +           // 3584
                              member("d/a.txt", "") +            // 4096
                              member("__info__", "") +           // 4608
                              member("d/b.jpg", "") +            // 5120
                              member("__end__.x", "") +          // 5632, not metadata
                              member("last", "") +               // 6144
                              end_marker());                     // 6656
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.idx");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.idx"), numbers({1536, 5120, 5632, 6656}));
    EXPECT_EQ(folder.read_index("s.tar", SHF_INDEX_ENERGON, "s.idx").code, SHF_OK);
    EXPECT_EQ(indexed_keys(folder / "s.tar"), (Keys{"d/a", "d/b", "__end__"}));
    // Energon takes 0 for the first sample, and yet its index does not say so.
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_ENERGON, numbers({0, 5120, 5632, 6656})),
                   SHF_E_FORMAT, {"sample 0", "1536"});
}

// Its expression for names takes "d/.hid" for the sample "d/".
TEST(EnergonIndex, has_samples_of_hidden_files_in_folders) {
    const IndexFolder folder;
    folder.write("s.tar", member("d/._a.jpg", "h") +      // 0
                              member("d/a.jpg", "1") +    // 1024
                              member("d/._a.txt", "h") +  // 2048
                              member("d/a.txt", "1") +    // 3072
                              end_marker());              // 4096
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.idx");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.idx"), numbers({0, 1024, 2048, 3072, 4096}));
    for (const std::string& bytes : {numbers({0, 1024, 2048, 3072, 4096}), numbers({1024, 4096})}) {
        const Outcome taken = folder.read_bytes("s.tar", SHF_INDEX_ENERGON, bytes);
        EXPECT_EQ(taken.code, SHF_OK) << taken;
        EXPECT_EQ(indexed_keys(folder / "s.tar"), (Keys{"d/a"}));
        folder.remove("s.tar.sfidx");
    }
    expect_refused(folder.read_bytes("s.tar", SHF_INDEX_ENERGON, numbers({0, 1024, 4096})),
                   SHF_E_CHANGED, {"2 samples"});
}

TEST(EnergonIndex, has_a_key_that_comes_again_twice) {
    const IndexFolder folder;
    folder.write("s.tar",
                 member("a.jpg", "1") + member("b.jpg", "1") + member("a.txt", "1") + end_marker());
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.idx"), SHF_E_AMBIGUOUS,
                   {"key comes again"});
    const Settings accept = {{"duplicate_keys", "accept"}};
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.idx", accept);
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.idx"), numbers({0, 1024, 2048, 3072}));
    expect_refused(folder.read_index("s.tar", SHF_INDEX_ENERGON, "s.idx"), SHF_E_AMBIGUOUS);
    EXPECT_EQ(folder.read_index("s.tar", SHF_INDEX_ENERGON, "s.idx", accept).code, SHF_OK);
}

TEST(EnergonIndex, that_lies_is_refused) {
    struct Lie {
        std::string bytes;
        int32_t code;
        std::vector<std::string> words;
    };
    const std::vector<Lie> lies = {
        {numbers({0, 1024, 2560}), SHF_E_FORMAT, {"sample 1", "byte 1024", "byte 1536"}},
        {numbers({512, 1536, 2560}), SHF_E_FORMAT, {"sample 0", "byte 512", "byte 0"}},
        {numbers({0, 1536, 3072}), SHF_E_CHANGED, {"ends at byte 3072", "byte 2560"}},
        {numbers({0, 1536}), SHF_E_CHANGED, {"1 sample,", "2"}},
        {numbers({0, 2560}), SHF_E_CHANGED, {"1 sample,", "2"}},
        {numbers({0, 1536, 2560, 2560}), SHF_E_CHANGED, {"3 samples", "2"}},
        {numbers({0, UINT64_MAX, 2560}), SHF_E_FORMAT, {"18446744073709551615"}},
        {numbers({2560}), SHF_E_FORMAT, {"8 bytes"}},
        {"", SHF_E_FORMAT, {"0 bytes"}},
        {numbers({0, 1536, 2560}) + "x", SHF_E_FORMAT, {"25 bytes"}},
    };
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    for (const Lie& lie : lies) {
        const Outcome outcome = folder.read_bytes("s.tar", SHF_INDEX_ENERGON, lie.bytes);
        expect_refused(outcome, lie.code, lie.words);
        expect_refused(outcome, lie.code, {"s.tar", "given.idx", "help: "});
        EXPECT_FALSE(folder.has("s.tar.sfidx"));
    }
}

TEST(EnergonIndex, that_is_damaged_never_gives_another_index) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    folder.expect_no_damage("s.tar", SHF_INDEX_ENERGON, numbers({0, 1536, 2560}));
}

TEST(EnergonIndex, ends_with_the_file_where_there_is_no_end_marker) {
    const IndexFolder folder;
    folder.write("s.tar", member("a.jpg", "1"));
    const Settings optional = {{"end_marker", "optional"}};
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.idx"), SHF_E_TRUNCATED);
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_ENERGON, "s.idx", optional);
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("s.idx"), numbers({0, 1024}));
}

TEST(EnergonIndex, is_of_one_plain_tar_with_samples) {
    const IndexFolder folder;
    folder.write("s.tar", small_shard());
    folder.write("s.zip", "PK\5\6" + zeros(18));
    folder.write("empty.tar", end_marker());
    const Settings empty = {{"allow_empty", "true"}};
    expect_refused(folder.write_index({"s.tar", "s.tar"}, SHF_INDEX_ENERGON, "s.idx"), SHF_E_USAGE,
                   {"one shard, not of 2"});
    expect_refused(folder.write_index({"s.zip"}, SHF_INDEX_ENERGON, "s.idx", empty),
                   SHF_E_UNSUPPORTED, {"ZIP"});
    expect_refused(folder.write_index({"empty.tar"}, SHF_INDEX_ENERGON, "s.idx", empty),
                   SHF_E_UNSUPPORTED, {"without samples"});
    EXPECT_FALSE(folder.has("s.idx"));
}

}  // namespace
}  // namespace shf::test
