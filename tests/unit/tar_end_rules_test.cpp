// Rules T19 to T22: fields and keys that come twice, the end of the archive and what follows it;
// and the switches that soften them, each of which softens nothing else.
#include "../sanitizers.h"
#include "shard_expect.h"
#include "tar_builder.h"

namespace shf::test {
namespace {

const Options skipping = options_with({{"on_error", "skip_sample"}});
const Options optional_end = options_with({{"end_marker", "optional"}});
const Options concat = options_with({{"concat", "true"}});
const Options ignore = options_with({{"trailing", "ignore"}});
const Options concat_ignore = options_with({{"concat", "true"}, {"trailing", "ignore"}});

const std::string a = member("a.txt", "1"), b = member("b.txt", "2");
const std::string both = "a{txt=1} b{txt=2}";

// ---- T19: duplicates --------------------------------------------------------------------------

TEST(T19Duplicate, same_field_is_ambiguous_and_names_both_positions) {
    const std::string shard =
        a + member("s.jpg", "x") + member("s.cls", "y") + member("s.jpg", "z") + b + end_marker();
    const ShardResult result = expect_fault(shard, SHF_E_AMBIGUOUS, 3072);
    EXPECT_NE(result.end.text.find("at byte 1024 and at byte 3072"), std::string::npos)
        << result.end.text;
    EXPECT_EQ(listing(result), "a{txt=1}");
    const ShardResult skipped = expect_read(shard, skipping);
    EXPECT_EQ(listing(skipped), both);
    ASSERT_EQ(skipped.bad_samples.size(), 1U);
    EXPECT_EQ(skipped.bad_samples[0].offset, 3072U);
}

// The positions are those of the first headers, pax and long names included.
TEST(T19Duplicate, positions_behind_long_names) {
    const std::string shard = a + gnu_name("s.jpg") + member("x", "1", Carrier::gnu) +
                              gnu_name("s.jpg") + member("x", "2", Carrier::gnu) + end_marker();
    const ShardResult result = expect_fault(shard, SHF_E_AMBIGUOUS, 1024 + 2048);
    EXPECT_NE(result.end.text.find("at byte 1024 and at byte 3072"), std::string::npos)
        << result.end.text;
}

TEST(T19Duplicate, lower_casing_can_make_them) {
    expect_fault(a + member("s.JPG", "1") + member("s.jpg", "2") + end_marker(), SHF_E_AMBIGUOUS,
                 2048);
    expect_fault(a + member("s.", "1") + member("s.", "2") + end_marker(), SHF_E_AMBIGUOUS, 2048);
    EXPECT_EQ(listing(expect_read(a + member("s.jpg", "1") + member("S.jpg", "2") +
                                  member("t.j", "3") + member("t.j.j", "4") + end_marker())),
              "a{txt=1} s{jpg=1} S{jpg=2} t{j=3 j.j=4}");
}

// From some number of fields on they are looked up another way.
TEST(T19Duplicate, among_many_fields) {
    for (const size_t count : {30U, 31U, 32U, 33U, 34U, 200U})
        for (const size_t twin : {size_t{0}, size_t{1}, size_t{17}, count - 1}) {
            std::string shard = a;
            for (size_t i = 0; i < count; ++i) shard += member(numbered("s.f", i), "");
            const uint64_t at = shard.size();
            const std::string good = shard + b + end_marker();
            shard += member(numbered("s.F", twin), "");
            const ShardResult result = read_shard(shard + b + end_marker());
            EXPECT_EQ(result.end.code, SHF_E_AMBIGUOUS);
            EXPECT_EQ(result.end.offset, at);
            EXPECT_NE(result.end.text.find(numbered("at byte ", 1024 + 512 * twin) +
                                           numbered(" and at byte ", at)),
                      std::string::npos)
                << result.end.text;
            const ShardResult whole = read_shard(good);
            ASSERT_EQ(whole.samples.size(), 3U);
            EXPECT_EQ(whole.samples[1].fields.size(), count);
        }
}

// Names that are those of the sample before are not looked up at all.
TEST(T19Duplicate, after_a_sample_with_the_same_fields) {
    const std::string before = member("r.x", "1") + member("r.y", "2") + member("r.z", "3");
    const std::string x = member("s.x", "4"), y = member("s.y", "5"), z = member("s.z", "6");
    for (const std::string& twice :
         {x + x, x + y + x, x + y + y, x + y + z + x, x + y + z + z, x + z + x, y + x + y})
        expect_fault(before + twice + end_marker(), SHF_E_AMBIGUOUS,
                     before.size() + twice.size() - 1024);
    for (const auto& [fields, listed] :
         {std::pair{x + y + z, "s{x=4 y=5 z=6}"}, std::pair{x, "s{x=4}"},
          std::pair{x + y, "s{x=4 y=5}"}, std::pair{x + z + y, "s{x=4 z=6 y=5}"},
          std::pair{z + y + x, "s{z=6 y=5 x=4}"},
          std::pair{x + y + z + member("s.w", "7"), "s{x=4 y=5 z=6 w=7}"}})
        EXPECT_EQ(listing(expect_read(before + fields + b + end_marker())),
                  "r{x=1 y=2 z=3} " + std::string(listed) + " b{txt=2}");
}

TEST(T19Duplicate, key_that_comes_again) {
    const std::string shard =
        member("s.jpg", "1") + a + member("s.cls", "2") + member("s.txt", "3") + b + end_marker();
    expect_fault(shard, SHF_E_AMBIGUOUS, 2048);
    const ShardResult skipped = expect_read(shard, skipping);
    EXPECT_EQ(listing(skipped), "s{jpg=1} " + both);
    EXPECT_EQ(skipped.bad_samples.size(), 1U);
    EXPECT_EQ(listing(expect_read(shard, options_with({{"duplicate_keys", "accept"}}))),
              "s{jpg=1} a{txt=1} s{cls=2 txt=3} b{txt=2}");
}

// As long as keys are sorted they are looked up in another way.
TEST(T19Duplicate, key_that_comes_again_among_many) {
    constexpr size_t many = SANITIZED ? 300 : 3000;
    std::string sorted;
    for (size_t i = 0; i < many; ++i) sorted += member(numbered("s", 10000 + i) + ".x", "");
    const std::string jump = member("a.x", ""), end = end_marker();
    for (const size_t again : {size_t{0}, size_t{1}, many / 2 + 57, many - 2}) {
        const std::string twin = member(numbered("s", 10000 + again) + ".x", "");
        expect_fault(sorted + twin + end, SHF_E_AMBIGUOUS, sorted.size());
        expect_fault(sorted + jump + twin + end, SHF_E_AMBIGUOUS, sorted.size() + jump.size());
        expect_fault(jump + sorted + twin + end, SHF_E_AMBIGUOUS, jump.size() + sorted.size());
        // Of those behind, too.
        const ShardResult result = expect_read(sorted + twin + jump + twin + jump + end, skipping);
        EXPECT_EQ(result.samples.size(), many + 1);
        EXPECT_EQ(result.bad_samples.size(), 3U);
    }
    expect_read(sorted + jump + member("s1.x", "") + end);
}

// What belongs to no sample does not come between its members.
TEST(T19Duplicate, ignored_members_do_not_end_a_sample) {
    EXPECT_EQ(listing(expect_read(member("s.jpg", "1") + member("README", "r") +
                                  member("__m__/a.txt", "m") + member(".x.txt", "h") +
                                  member("s.cls", "2") + end_marker())),
              "s{jpg=1 cls=2}");
}

TEST(T19Duplicate, same_key_in_another_directory) {
    EXPECT_EQ(listing(expect_read(member("p/s.jpg", "1") + member("q/s.jpg", "2") +
                                  member("s.jpg", "3") + end_marker())),
              "p/s{jpg=1} q/s{jpg=2} s{jpg=3}");
}

// ---- T20: what follows the end marker ---------------------------------------------------------

TEST(T20AfterTheEnd, only_zeros) {
    for (const size_t more : {0U, 1U, 511U, 512U, 513U, 9216U, 65536U})
        EXPECT_EQ(listing(expect_read(a + b + end_marker() + zeros(more))), both) << more;
    for (const size_t gap : {0U, 1U, 511U, 512U, 700U, 9216U}) {
        const std::string shard = a + b + end_marker() + zeros(gap) + "x" + zeros(600);
        const uint64_t junk = 3072 + gap;
        const ShardResult result = expect_fault(shard, SHF_E_FORMAT, junk);
        EXPECT_NE(result.end.text.find("trailing=ignore"), std::string::npos) << result.end.text;
        EXPECT_NE(result.end.text.find("concat=true"), std::string::npos) << result.end.text;
        expect_fault(shard, SHF_E_FORMAT, junk, optional_end);
    }
}

// The last sample is complete when the marker has come, whatever follows.
TEST(T20AfterTheEnd, concatenated_archive) {
    const std::string shard = a + end_marker() + zeros(7168) + b + end_marker();
    expect_fault(shard, SHF_E_FORMAT, 1024 + 1024 + 7168);
    for (const Options& options : {concat, concat_ignore})
        EXPECT_EQ(listing(expect_read(shard, options)), both);
    const ShardResult ignored = expect_read(shard, ignore);
    EXPECT_EQ(listing(ignored), "a{txt=1}");
    EXPECT_EQ(ignored.stat(SHF_STAT_TRAILING), 1U);
}

TEST(T20AfterTheEnd, concat_still_wants_every_end) {
    expect_fault(a + end_marker() + b, SHF_E_TRUNCATED, 3072, concat);
    expect_fault((a + end_marker() + b).substr(0, 2600), SHF_E_TRUNCATED, 2048, concat);
    expect_fault(a + end_marker() + b.substr(0, 300), SHF_E_TRUNCATED, 2048, concat);
    expect_fault(a + end_marker() + b + zeros(512), SHF_E_TRUNCATED, 3072, concat);
    // Neither is it a licence for junk.
    expect_fault(a + end_marker() + padded("junk"), SHF_E_FORMAT, 2048, concat);
    EXPECT_EQ(expect_read(a + end_marker() + padded("junk"), concat_ignore).stat(SHF_STAT_TRAILING),
              1U);
    EXPECT_EQ(listing(expect_read(a + end_marker() + b,
                                  options_with({{"concat", "true"}, {"end_marker", "optional"}}))),
              both);
}

TEST(T20AfterTheEnd, many_archives) {
    std::string shard, expected;
    for (size_t i = 0; i < 50; ++i) {
        const std::string key = numbered("k", i);
        shard += member(key + ".txt", key) + end_marker() + zeros(512 * (i % 3));
        expected += (i > 0 ? " " : "") + key + "{txt=" + key + "}";
    }
    EXPECT_EQ(listing(expect_read(shard, concat)), expected);
}

// ---- T21: no end marker, or half of it --------------------------------------------------------

TEST(T21EndMarker, missing_is_truncated) {
    const ShardResult result = expect_fault(a + b, SHF_E_TRUNCATED, 2048);
    EXPECT_EQ(listing(result), "a{txt=1}");
    EXPECT_NE(result.end.text.find("end_marker=optional"), std::string::npos) << result.end.text;
    const ShardResult accepted = expect_read(a + b, optional_end);
    EXPECT_EQ(listing(accepted), both);
    EXPECT_EQ(accepted.stat(SHF_STAT_MISSING_END_MARKERS), 1U);
}

TEST(T21EndMarker, one_zero_block_is_a_missing_one) {
    expect_fault(a + b + zeros(512), SHF_E_TRUNCATED, 2048);
    const ShardResult accepted = expect_read(a + b + zeros(512), optional_end);
    EXPECT_EQ(listing(accepted), both);
    EXPECT_EQ(accepted.stat(SHF_STAT_MISSING_END_MARKERS), 1U);
    const ShardResult two = expect_read(a + b + zeros(1024), optional_end);
    EXPECT_EQ(two.stat(SHF_STAT_MISSING_END_MARKERS), 0U);
}

TEST(T21EndMarker, parts_of_a_block_are_never_accepted) {
    for (const Options& options : {Options(), optional_end, ignore, concat})
        for (const size_t size : {1U, 511U, 513U, 1023U})
            expect_fault(a + b + zeros(size), SHF_E_TRUNCATED, 2048, options);
}

TEST(T21EndMarker, one_zero_block_in_the_middle_is_format) {
    for (const Options& options : {Options(), optional_end, concat, ignore})
        expect_fault(a + zeros(512) + b + end_marker(), SHF_E_FORMAT, 1024, options);
}

TEST(T21EndMarker, missing_padding_is_truncated) {
    const std::string shard = a + b;
    for (const Options& options : {Options(), optional_end})
        expect_fault(shard.substr(0, shard.size() - 511), SHF_E_TRUNCATED, 1024, options);
}

// ---- T22: garbage -----------------------------------------------------------------------------

TEST(T22Garbage, ignored_on_request_and_counted) {
    for (const std::string& junk : {"x"s, "junk"s + zeros(100), std::string(5000, 'j'),
                                    a.substr(0, 511), std::string(200000, '\xff')}) {
        const std::string shard = a + b + end_marker() + junk;
        expect_fault(shard, SHF_E_FORMAT, 3072);
        for (const Options& options : {ignore, concat_ignore}) {
            const ShardResult result = expect_read(shard, options);
            EXPECT_EQ(listing(result), both);
            EXPECT_EQ(result.stat(SHF_STAT_TRAILING), 1U);
        }
    }
    EXPECT_EQ(expect_read(a + b + end_marker() + zeros(5000), ignore).stat(SHF_STAT_TRAILING), 0U);
}

// It speaks of what comes after the end, not of damage before.
TEST(T22Garbage, ignore_softens_nothing_else) {
    expect_fault(a + padded("junk") + b + end_marker(), SHF_E_FORMAT, 1024, ignore);
    expect_fault(a + b, SHF_E_TRUNCATED, 2048, ignore);
    expect_fault(a + b + zeros(512) + padded("junk"), SHF_E_FORMAT, 2048, ignore);
    expect_fault(padded("junk"), SHF_E_FORMAT, 0, ignore);
}

// ---- allow_empty ------------------------------------------------------------------------------

TEST(AllowEmpty, softens_nothing_else) {
    const Options empty = options_with({{"allow_empty", "true"}});
    EXPECT_EQ(expect_read(a + end_marker(), empty).stat(SHF_STAT_EMPTY_SHARDS), 0U);
    expect_fault("<html>", SHF_E_FORMAT, 0, empty);
    expect_fault(a, SHF_E_TRUNCATED, 1024, empty);
    expect_fault(padded("junk"), SHF_E_FORMAT, 0, empty);
    EXPECT_EQ(expect_read(member("README", "r"),
                          options_with({{"allow_empty", "true"}, {"end_marker", "optional"}}))
                  .stat(SHF_STAT_EMPTY_SHARDS),
              1U);
}

// A shard whose samples were all bad is not empty: they were counted.
TEST(AllowEmpty, bad_samples_are_samples) {
    const ShardResult result = expect_read(sparse_old_gnu("s.bin") + end_marker(), skipping);
    EXPECT_EQ(result.bad_samples.size(), 1U);
    EXPECT_EQ(result.stat(SHF_STAT_EMPTY_SHARDS), 0U);
}

}  // namespace
}  // namespace shf::test
