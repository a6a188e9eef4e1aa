// Limits, each at its bound and one above, and the counters, which must equal what was in the
// shard.
#include "shard_expect.h"
#include "tar_builder.h"

namespace shf::test {
namespace {

const std::string a = member("a.txt", "1"), z = member("z.txt", "9");
constexpr uint64_t here = 1024;

// A member of a trusted size that is too large costs its sample, not the shard.
void expect_limit(std::string_view middle, uint64_t offset, Settings settings,
                  std::string_view option) {
    Options options = options_with(settings);
    const std::string shard = a + std::string(middle) + z + end_marker();
    const ShardResult refused = expect_fault(shard, SHF_E_LIMIT, offset, options);
    EXPECT_EQ(listing(refused), "a{txt=1}");
    EXPECT_NE(refused.end.text.find(option), std::string::npos) << refused.end.text;
    options.on_error = OnError::skip_sample;
    const ShardResult skipped = expect_read(shard, options);
    EXPECT_EQ(listing(skipped), "a{txt=1} z{txt=9}");
    ASSERT_EQ(skipped.bad_samples.size(), 1U);
    EXPECT_EQ(skipped.bad_samples[0].code, SHF_E_LIMIT);
    EXPECT_EQ(skipped.bad_samples[0].offset, offset);
    EXPECT_EQ(skipped.bad_samples[0].after, 1U);
}

void expect_within(std::string_view middle, Settings settings) {
    const ShardResult result =
        expect_read(a + std::string(middle) + z + end_marker(), options_with(settings));
    EXPECT_EQ(result.samples.size(), 3U);
}

TEST(Limit, max_member) {
    const std::string data(700, 'd');
    expect_within(member("b.txt", data), {{"max_member", "700"}});
    expect_within(member("b.txt", data), {{"max_member", "701"}});
    expect_limit(member("b.txt", data), here, {{"max_member", "699"}}, "max_member=699");
    // A member that belongs to no sample is never held.
    EXPECT_EQ(listing(expect_read(a + member("README", data) + z + end_marker(),
                                  options_with({{"max_member", "1"}}))),
              "a{txt=1} z{txt=9}");
}

TEST(Limit, max_sample) {
    const std::string data(700, 'd');
    const std::string sample = member("b.x", data) + member("b.y", data) + member("b.z", data);
    expect_within(sample, {{"max_sample", "2100"}});
    expect_limit(sample, here + 2 * 1536, {{"max_sample", "2099"}}, "max_sample=2099");
    expect_limit(sample, here + 1536, {{"max_sample", "1399"}}, "max_sample=1399");
    // Each sample counts for itself.
    expect_within(member("b.x", data), {{"max_sample", "700"}});
}

TEST(Limit, memory) {
    const std::string mib(1 << 20, 'm');
    const Options options = options_with({{"memory", "1MiB"}});
    const std::string at_bound = a + member("b.txt", mib) + z + end_marker();
    const std::string above = a + member("b.txt", mib + "x") + z + end_marker();
    const std::string together = a + member("b.x", mib) + member("b.y", "1") + z + end_marker();
    EXPECT_EQ(read_shard(at_bound, options).samples.size(), 3U);
    for (const std::string& shard : {above, together}) {
        const ShardResult result = read_shard(shard, options);
        EXPECT_EQ(result.end.code, SHF_E_LIMIT);
        EXPECT_NE(result.end.text.find("memory=1048576"), std::string::npos) << result.end.text;
    }
}

// What a limit refuses is passed over without being held.
TEST(Limit, skipped_member_takes_no_memory) {
    const std::string shard = a + member("b.txt", std::string(8 << 20, 'm')) +
                              member("README", std::string(8 << 20, 'r')) + z + end_marker();
    const Options options = options_with({{"memory", "1MiB"}, {"on_error", "skip_sample"}});
    for (const bool size_known : {true, false}) {
        const ShardResult result = read_shard(shard, options, {.size_known = size_known});
        EXPECT_EQ(listing(result), "a{txt=1} z{txt=9}");
        EXPECT_LE(result.memory_peak, uint64_t{1} << 20);
    }
}

// Neither is a member that stands inside a sample and belongs to none.
TEST(Limit, ignored_member_inside_a_sample_takes_no_memory) {
    const std::string shard = member("b.x", std::string(1000, 'x')) +
                              member("README", std::string(16 << 20, 'r')) +
                              member("b.y", std::string(1000, 'y')) + end_marker();
    const ShardResult result = read_shard(shard, options_with({{"memory", "1MiB"}}));
    EXPECT_EQ(listing(result),
              "b{x=" + std::string(1000, 'x') + " y=" + std::string(1000, 'y') + "}");
    EXPECT_LE(result.memory_peak, uint64_t{2} << 20);
}

// Sums of declared sizes must not wrap around.
TEST(Limit, huge_sizes_do_not_overflow) {
    const Options wide =
        options_with({{"max_member", "1EiB"}, {"max_sample", "1EiB"}, {"memory", "16TiB"}});
    std::string shard = a;
    shard += member("b.x", "data");
    shard += header({.name = "b.y", .size = uint64_t{1} << 60});
    expect_fault(shard + z + end_marker(), SHF_E_LIMIT, 2048, wide);
}

TEST(Counters, equal_what_was_in_the_shard) {
    const std::string shard =
        a + header({.name = "d.d/", .type = '5'}) + header({.name = "e/", .type = '5'}) +
        header({.name = "l1.txt", .type = '1', .link = "a.txt"}) +
        header({.name = "l2.txt", .type = '2', .link = "a.txt"}) +
        header({.name = "l3", .type = '2', .link = "a.txt"}) + header({.name = "c", .type = '3'}) +
        header({.name = "f", .type = '6'}) +
        header({.name = "label", .type = 'V', .carrier = Carrier::gnu}) + member("README", "r") +
        member("__index__", "i") + member(".hidden", "h") + member("__m__/x.txt", "m") +
        member("dir/.x.txt", "h") + member({.name = "u", .type = 'u'}, "u") +
        member({.name = "v", .type = 'v'}, "v") + sparse_pax_1_0("nokey") + pax({{"size", "5"}}) +
        header({.name = "p.txt", .size = 4}) + padded("five!") + pax({{"size", "4"}}) +
        member("q.txt", "four") + z;
    const ShardResult result =
        expect_read(shard + end_marker() + "junk", options_with({{"trailing", "ignore"}}));
    EXPECT_EQ(listing(result), "a{txt=1} p{txt=five!} q{txt=four} z{txt=9}");
    const std::pair<int32_t, uint64_t> expected[] = {
        {SHF_STAT_DIRECTORIES, 2},
        {SHF_STAT_LINKS, 3},
        {SHF_STAT_SPECIALS, 3},
        {SHF_STAT_IGNORED_MEMBERS, 6},
        {SHF_STAT_UNKNOWN_TYPES, 2},
        {SHF_STAT_SPARSE, 1},
        {SHF_STAT_SIZE_DISAGREEMENTS, 1},
        {SHF_STAT_TRAILING, 1},
        {SHF_STAT_MISSING_END_MARKERS, 0},
        {SHF_STAT_SUFFIX_MISMATCHES, 0},
        {SHF_STAT_EMPTY_SHARDS, 0},
    };
    for (const auto& [stat, count] : expected) EXPECT_EQ(result.stat(stat), count) << stat;
    const ShardResult unmarked = expect_read(shard, options_with({{"end_marker", "optional"}}));
    EXPECT_EQ(unmarked.stat(SHF_STAT_MISSING_END_MARKERS), 1U);
    EXPECT_EQ(unmarked.stat(SHF_STAT_TRAILING), 0U);
}

// D9: the magic decides, and a suffix that says otherwise is counted.
TEST(Counters, suffix_mismatch) {
    const std::string shard = a + end_marker();
    for (const char* url : {"x.tar.gz", "x.tgz", "x.tar.zst"})
        EXPECT_EQ(read_shard(shard, {}, {}, url).stat(SHF_STAT_SUFFIX_MISMATCHES), 1U) << url;
    for (const char* url : {"x.tar", "x", "x.dat"})
        EXPECT_EQ(read_shard(shard, {}, {}, url).stat(SHF_STAT_SUFFIX_MISMATCHES), 0U) << url;
}

TEST(Offsets, are_those_of_the_first_header) {
    const std::string shard = member("a.x", "1") + member("a.y", "2") +
                              pax({{"comment", "c"}}, 'g') + pax({{"path", "b.x"}}) +
                              member("b", "3") + gnu_name("c.x") + member("c", "4", Carrier::gnu) +
                              member("README", "") + member("d.x", "5") + end_marker();
    const ShardResult result = expect_read(shard);
    ASSERT_EQ(result.samples.size(), 4U);
    const uint64_t expected[] = {0, 2048, 2048 + 3072, 2048 + 3072 + 2048 + 512};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(result.samples[i].offset, expected[i]) << i;
}

}  // namespace
}  // namespace shf::test
