// V1: every byte prefix of tars and of their compressed forms. A cut is never taken for the end:
// what comes out before the error is a byte-exact prefix of the samples.
#include "filter_encoders.h"
#include "sanitizers.h"
#include "shard_expect.h"
#include "tar_builder.h"

#include <set>

namespace shf::test {
namespace {

// Under sanitizers every third length: the others are for builds that are quicker.
constexpr size_t stride = CASE_STRIDE;

struct Archive {
    const char* name;
    std::string bytes;
    // Where a first header of a member starts, and where the end marker does: the only places where
    // end_marker=optional may take a cut for the end.
    std::set<size_t> boundaries;
};

void PrintTo(const Archive& archive, std::ostream* to) {
    *to << archive.name;
}

class Maker {
  public:
    Maker& add(const std::string& entry) {
        archive_.boundaries.insert(archive_.bytes.size());
        archive_.bytes += entry;
        return *this;
    }
    Archive end(const char* name, size_t record = 0) {
        archive_.boundaries.insert(archive_.bytes.size());
        archive_.bytes += end_marker();
        while (record != 0 && archive_.bytes.size() % record != 0) archive_.bytes += zeros(512);
        archive_.name = name;
        return std::move(archive_);
    }

  private:
    Archive archive_;
};

std::vector<Archive> archives() {
    std::vector<Archive> all;
    all.push_back(Maker().add(member("one.txt", "a single member")).end("one_member"));
    all.push_back(Maker()
                      .add(member("a.jpg", noise(700)))
                      .add(member("a.cls", "7"))
                      .add(member("b.jpg", noise(1300)))
                      .add(member("b.cls", "8"))
                      .end("ustar_records", 10240));
    all.push_back(Maker()
                      .add(member("a.x", text(512), Carrier::v7))
                      .add(member("a.y", "", Carrier::v7))
                      .add(header({.name = "d/", .type = '\0', .carrier = Carrier::v7}))
                      .add(member("c.x", text(1024), Carrier::v7))
                      .end("v7"));
    all.push_back(
        Maker()
            .add(gnu_name(std::string(150, 'n') + ".txt") + member("n", text(90), Carrier::gnu))
            .add(gnu_name(std::string(600, 'm') + ".txt") + gnu_long("target\0"s, 'K') +
                 member("m", text(600), Carrier::gnu))
            .add(member("z.txt", "z", Carrier::gnu))
            .end("gnu_long_names"));
    all.push_back(Maker()
                      .add(pax({{"comment", "made by a test"}}, 'g'))
                      .add(pax({{"path", std::string(200, 'p') + ".txt"}, {"mtime", "1.5"}}) +
                           member("p", text(77)))
                      .add(pax({{"size", "1025"}}) + header({.name = "s.txt"}) + padded(text(1025)))
                      .add(pax({{"comment", text(900)}}) + member("c.txt", ""))
                      .end("pax"));
    all.push_back(Maker()
                      .add(member("a.x", "1"))
                      .add(header({.name = "l.x", .type = '2', .link = "a.x"}))
                      .add(header({.name = "h.x", .type = '1', .link = "a.x"}))
                      .add(header({.name = "dir/", .type = '5'}))
                      .add(member("README", text(1500)))
                      .add(member({.name = "u.x", .type = 'u'}, text(513)))
                      .add(header({.name = "vol", .type = 'V', .carrier = Carrier::gnu}))
                      .add(member("a.y", "2"))
                      .add(header({.name = "null", .type = '3'}))
                      .end("skipped_members"));
    all.push_back(
        Maker()
            .add(member("a.x", text(100)))
            .add(with(header({.name = "b.x"}), size_field, base256(700)) + padded(text(700)))
            .add(member({.name = "c.x", .prefix = "some/long/prefix"}, text(30)))
            .add(member({.name = "d.x", .type = '7'}, text(511)))
            .end("other_numbers_and_names", 4096));
    Maker tiny;
    for (size_t i = 0; i < 8; ++i) {
        tiny.add(member(numbered("k", i) + ".cls", std::to_string(i)));
        tiny.add(member(numbered("k", i) + ".json", "{}"));
    }
    all.push_back(tiny.end("tiny_samples"));
    return all;
}

bool is_prefix(const std::vector<SeenSample>& part, const std::vector<SeenSample>& whole) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

class Truncation : public testing::TestWithParam<Archive> {};

INSTANTIATE_TEST_SUITE_P(V1, Truncation, testing::ValuesIn(archives()),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr Way ways[] = {{.chunk = 0, .size_known = true},
                        {.chunk = 0, .size_known = false},
                        {.chunk = 513, .size_known = false}};

TEST_P(Truncation, no_prefix_of_a_plain_tar_is_silent) {
    const Archive& archive = GetParam();
    const std::vector<SeenSample> whole = read_shard(archive.bytes).samples;
    const size_t end = *archive.boundaries.rbegin() + 1024;  // zeros after it may go
    ASSERT_FALSE(whole.empty());
    for (size_t size = 0; size < archive.bytes.size(); size += stride) {
        const std::string_view part = std::string_view(archive.bytes).substr(0, size);
        for (const Way& way : ways) {
            const ShardResult result = read_shard(part, {}, way);
            ASSERT_TRUE(is_prefix(result.samples, whole)) << size;
            if (size >= end) {
                ASSERT_EQ(result.end.code, SHF_OK) << size << ": " << result.end.text;
                ASSERT_EQ(result.samples.size(), whole.size()) << size;
                continue;
            }
            // FORMAT is for what is too short to be known as a tar, and for a long name whose
            // member is gone (T11, T24).
            ASSERT_TRUE(result.end.code == SHF_E_TRUNCATED ||
                        (result.end.code == SHF_E_FORMAT && (size < 512 || size % 512 == 0)))
                << size << ": " << result.end.text;
            ASSERT_LE(result.end.offset, size);
        }
    }
}

TEST_P(Truncation, optional_end_marker_loses_whole_members_only) {
    const Archive& archive = GetParam();
    const Options options = options_with({{"end_marker", "optional"}, {"allow_empty", "true"}});
    const size_t last = *archive.boundaries.rbegin();
    size_t accepted = 0;
    for (size_t size = 0; size < last + 1024; size += stride) {
        const std::string part = archive.bytes.substr(0, size);
        for (const Way& way : ways) {
            const ShardResult result = read_shard(part, options, way);
            const bool boundary =
                size > 0 && (archive.boundaries.contains(size) || size == last + 512);
            ASSERT_EQ(result.end.code == SHF_OK, boundary) << size << ": " << result.end.text;
            if (!boundary) continue;
            ++accepted;
            ASSERT_EQ(result.stat(SHF_STAT_MISSING_END_MARKERS), 1U) << size;
            const std::string ended = archive.bytes.substr(0, std::min(size, last)) + end_marker();
            ASSERT_EQ(result.samples, read_shard(ended, options).samples) << size;
        }
    }
    if (stride == 1) {
        EXPECT_EQ(accepted, std::size(ways) * archive.boundaries.size());
    }
}

TEST_P(Truncation, no_prefix_of_a_compressed_tar_is_silent) {
    const Archive& archive = GetParam();
    const std::vector<SeenSample> whole = read_shard(archive.bytes).samples;
    const Options loosest =
        options_with({{"end_marker", "optional"}, {"allow_empty", "true"}, {"concat", "true"}});
    for (const char* codec : codecs) {
        const std::string bytes = compress(codec, archive.bytes);
        ASSERT_EQ(read_shard(bytes).samples, whole) << codec;
        for (size_t size = 0; size < bytes.size(); size += stride) {
            const std::string_view part = std::string_view(bytes).substr(0, size);
            for (const Options& options : {Options(), loosest}) {
                const ShardResult result =
                    read_shard(part, options, {.chunk = size % 3 == 0 ? size_t{100} : 0});
                ASSERT_NE(result.end.code, SHF_OK) << codec << ' ' << size;
                ASSERT_TRUE(is_prefix(result.samples, whole)) << codec << ' ' << size;
                ASSERT_TRUE(result.end.code == SHF_E_TRUNCATED ||
                            (result.end.code == SHF_E_FORMAT && size < 10))
                    << codec << ' ' << size << ": " << result.end.text;
            }
        }
    }
}

// Two frames: a cut between them is a sound compressed file of half a tar.
TEST_P(Truncation, no_prefix_of_two_frames_is_silent) {
    const Archive& archive = GetParam();
    const std::vector<SeenSample> whole = read_shard(archive.bytes).samples;
    const size_t half = *archive.boundaries.rbegin() / 1024 * 512;
    for (const char* codec : codecs) {
        const std::string first = compress(codec, archive.bytes.substr(0, half));
        const std::string bytes = first + compress(codec, archive.bytes.substr(half));
        ASSERT_EQ(read_shard(bytes).samples, whole) << codec;
        for (size_t size = first.size() - 5; size < bytes.size(); size += stride) {
            const ShardResult result = read_shard(std::string_view(bytes).substr(0, size));
            ASSERT_NE(result.end.code, SHF_OK) << codec << ' ' << size;
            ASSERT_TRUE(is_prefix(result.samples, whole)) << codec << ' ' << size;
        }
    }
}

}  // namespace
}  // namespace shf::test
