// The index of a compressed tar: samples are those of the plain tar, wherever reading starts and by
// how many threads; what is damaged, or was never true, gives an error and no other bytes.
#include "codec/indexed_filter.h"
#include "codec/stretch_reader.h"
#include "filter_encoders.h"
#include "filter_outcome.h"
#include "index_builder.h"

#include <gtest/gtest.h>

#include <functional>

namespace shf::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;

std::string tar_of(size_t members, size_t size, uint32_t seed = 1) {
    std::string tar;
    for (size_t i = 0; i < members; ++i) {
        const auto number = static_cast<uint32_t>(i);
        tar += member("s" + std::to_string(i) + ".jpg",
                      i % 2 != 0 ? noise(size, seed + number) : text(size, seed + number));
        tar += member("s" + std::to_string(i) + ".cls", std::to_string(i));
    }
    return tar + end_marker();
}

std::string compress_in_frames(std::string_view codec, std::string_view data, size_t frame) {
    std::string all;
    for (size_t at = 0; at < data.size(); at += frame)
        all += compress(codec, data.substr(at, frame));
    return all;
}

void expect_same_samples(const std::string& tar, const std::string& packed,
                         std::shared_ptr<const ShardIndex> index, bool backwards = true) {
    const IndexedTar plain(tar, build_index_of(tar)), compressed(packed, std::move(index));
    ASSERT_EQ(plain.samples(), compressed.samples());
    for (size_t i = 0; i < plain.samples(); ++i) {
        const size_t number = backwards ? plain.samples() - 1 - i : i;
        EXPECT_TRUE(plain.read(number) == compressed.read(number)) << "sample " << number;
    }
}

// The plain bytes of all stretches, read in random order by readers that come and go.
void expect_stretches(const std::string& packed, const DecodePoints& points,
                      const std::string& data) {
    const Options options;
    const auto source = memory_source(as_bytes(packed));
    std::minstd_rand random(7);
    auto reader = std::make_unique<StretchReader>(*source, points, options);
    for (size_t i = 0; i < 3 * points.size(); ++i) {
        if (random() % 4 == 0) reader = std::make_unique<StretchReader>(*source, points, options);
        const size_t number = random() % points.size();
        const size_t start = points.starts[number];
        std::string bytes(points.end(number) - start, '\0');
        reader->read(number, {bytes_of(bytes), bytes.size()});
        ASSERT_TRUE(bytes == data.substr(start, bytes.size())) << "stretch " << number;
    }
}

class EachCompression : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Index, EachCompression, testing::ValuesIn(codecs),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EachCompression, samples_are_those_of_the_plain_tar) {
    const std::string tar = tar_of(30, 150'000);
    for (const size_t frame : {tar.size(), 3 * MiB / 2, size_t{100'000}}) {
        const std::string packed = compress_in_frames(GetParam(), tar, frame);
        const auto index = build_index_of(packed);
        ASSERT_TRUE(index->points());
        const DecodePoints& points = *index->points();
        EXPECT_EQ(points.codec, GetParam());
        EXPECT_EQ(points.length, tar.size());
        EXPECT_EQ(points.fault(packed.size()), nullptr);
        EXPECT_EQ(index->identity().size, packed.size());
        EXPECT_EQ(index->end(), tar.size() - end_marker().size());
        // The file is that of the format, and reads back as it was.
        EXPECT_TRUE(std::ranges::equal(index->file(), as_bytes(parts_of(*index).file())));
        const std::string_view file(reinterpret_cast<const char*>(index->file().data()),
                                    index->file().size());
        EXPECT_TRUE(parts_of(*parse_index(file)) == parts_of(*index));
        expect_stretches(packed, points, tar);
        expect_same_samples(tar, packed, index, frame != tar.size());
        if (frame == 3 * MiB / 2) {
            EXPECT_EQ(points.size(), (tar.size() + frame - 1) / frame);
            for (size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points.starts[i], i * frame);
        }
    }
}

TEST(IndexOfGzip, points_are_inside_members) {
    for (const int level : {1, 6, 9, 0}) {
        const std::string tar = tar_of(60, 300'000);
        const std::string packed = gzip(tar, level);
        const auto index = build_index_of(packed);
        const DecodePoints& points = *index->points();
        ASSERT_GT(points.size(), 4U);
        for (size_t i = 0; i < points.size(); ++i) {
            EXPECT_TRUE(points.is_point(i));
            EXPECT_EQ(points.window(i).empty(), i == 0);
            EXPECT_LT(points.end(i) - points.starts[i], 3 * MiB);
        }
        expect_stretches(packed, points, tar);
        expect_same_samples(tar, packed, index);
    }
}

// A large member, small ones behind it, empty ones between, zeros at the end.
TEST(IndexOfGzip, goes_on_behind_a_member) {
    const std::string tar = tar_of(50, 200'000);
    const std::string data = compress("gzip", tar.substr(0, 5 * MiB)) + gzip("") +
                             compress_in_frames("gzip", tar.substr(5 * MiB), 70'000) + gzip("") +
                             std::string(600, '\0');
    const auto index = build_index_of(data);
    expect_stretches(data, *index->points(), tar);
    expect_same_samples(tar, data, index);
}

TEST(IndexOfZstd, skippable_frames_stand_anywhere) {
    const std::string tar = tar_of(30, 100'000);
    std::string data = skippable("first");
    for (size_t at = 0; at < tar.size(); at += 600'000)
        data += compress("zstd", tar.substr(at, 600'000)) + skippable(noise(5000));
    const auto index = build_index_of(data);
    expect_stretches(data, *index->points(), tar);
    expect_same_samples(tar, data, index);
}

TEST(IndexOfCompressed, damage_is_found_where_it_is) {
    const std::string tar = tar_of(60, 100'000);
    for (const char* codec : codecs) {
        const std::string packed = compress_in_frames(codec, tar, 3 * MiB / 2);
        const auto index = build_index_of(packed);
        const DecodePoints& points = *index->points();
        const size_t hurt = points.size() / 2;
        std::string damaged = packed;
        char& byte = damaged[points.places[hurt] / 8 + 50'000];
        byte = static_cast<char>(byte ^ 0x10);
        const IndexedTar good(tar, build_index_of(tar)), bad(damaged, index);
        size_t failed = 0;
        for (size_t i = 0; i < bad.samples(); ++i) {
            try {
                EXPECT_TRUE(bad.read(i) == good.read(i));
            } catch (const Error& error) {
                ++failed;
                EXPECT_TRUE(error.code() == SHF_E_INTEGRITY || error.code() == SHF_E_FORMAT ||
                            error.code() == SHF_E_TRUNCATED)
                    << error.what();
                EXPECT_EQ(error.fault().offset, points.starts[hurt]) << error.what();
                EXPECT_NE(std::string(error.what()).find("delete its index"), std::string::npos);
            }
        }
        EXPECT_GT(failed, 3U) << codec;
        EXPECT_LT(failed, 30U) << codec;
    }
}

TEST(IndexOfCompressed, files_that_are_not_true_are_refused) {
    const std::string tar = tar_of(40, 200'000), packed = gzip(tar);
    const IndexParts good = parts_of(*build_index_of(packed));
    EXPECT_EQ(code_of_index(good.file()), SHF_OK);
    struct Lie {
        const char* what;
        std::function<void(DecodePoints&)> tell;
    };
    const Lie lies[] = {
        {"different lengths", [](auto& p) { p.sums.pop_back(); }},
        {"different lengths", [](auto& p) { p.starts.push_back(p.length - 1); }},
        {"no points",
         [](auto& p) {
             const DecodePoints all = p;
             p = {};
             p.codec = all.codec, p.length = all.length;
         }},
        {"at the start", [](auto& p) { p.starts[0] = 1; }},
        {"at the start", [](auto& p) { p.places[0] = DecodePoints::none; }},
        {"outside of the shard", [](auto& p) { p.length = p.starts.back(); }},
        {"do not ascend", [](auto& p) { std::swap(p.starts[1], p.starts[2]); }},
        {"do not ascend", [](auto& p) { std::swap(p.places[1], p.places[2]); }},
        {"do not ascend", [](auto& p) { p.places.back() = uint64_t{1} << 62; }},
        {"too long", [](auto& p) { p.length += 100 * MiB; }},
        {"outside of the windows", [](auto& p) { p.window_ends.back() += 1; }},
        {"outside of the windows", [](auto& p) { p.window_ends[1] = 0xffffffff; }},
        {"windows of no point", [](auto& p) { p.windows.push_back(0); }},
        {"too large",
         [](auto& p) {
             p.windows.resize(p.windows.size() + 40'000);
             p.window_ends.back() += 40'000;
         }},
        {"without a point", [](auto& p) { p.places[1] = DecodePoints::none; }},
        {"inside a frame", [](auto& p) { p.codec = "zstd"; }},
        {"inside a frame", [](auto& p) { p.places[0] = 3; }},
        {"no compression", [](auto& p) { p.codec = "brotli"; }},
    };
    for (const Lie& lie : lies) {
        IndexParts parts = good;
        lie.tell(*parts.points);
        try {
            (void)parse_index(parts.file());
            ADD_FAILURE() << lie.what;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_FORMAT);
            EXPECT_NE(std::string(error.what()).find(lie.what), std::string::npos) << error.what();
        }
    }
    // A tar that does not end in what comes out.
    IndexParts parts = good;
    parts.points->length = parts.end - 512;
    EXPECT_EQ(code_of_index(parts.file()), SHF_E_FORMAT);
}

TEST(IndexOfCompressed, lies_that_cannot_be_seen_give_no_other_bytes) {
    const std::string tar = tar_of(40, 200'000), packed = gzip(tar);
    const IndexParts good = parts_of(*build_index_of(packed));
    const IndexedTar truth(tar, build_index_of(tar));
    const std::function<void(DecodePoints&)> lies[] = {
        [](auto& p) { p.sums[1] ^= 1; },
        [](auto& p) { p.places[1] += 24; },
        [](auto& p) { p.places[1] -= 8; },
        [](auto& p) { p.places[0] = 8; },
        [](auto& p) { p.starts[1] += 512; },
        [](auto& p) { p.windows[100] = static_cast<uint8_t>(p.windows[100] ^ 1); },
        [](auto& p) {
            p.codec = "bzip2", p.windows.clear();
            p.window_ends.assign(p.window_ends.size(), 0);
            for (uint64_t& place : p.places) place -= place % 8;
        },
    };
    for (const auto& lie : lies) {
        IndexParts parts = good;
        lie(*parts.points);
        const IndexedTar shard(packed, parse_index(parts.file()));
        size_t failed = 0;
        for (size_t i = 0; i < shard.samples(); ++i) {
            try {
                EXPECT_TRUE(shard.read(i) == truth.read(i));
            } catch (const Error& error) {
                ++failed;
                EXPECT_TRUE(error.code() == SHF_E_INTEGRITY || error.code() == SHF_E_FORMAT ||
                            error.code() == SHF_E_TRUNCATED)
                    << error.what();
            }
        }
        EXPECT_GT(failed, 0U) << "lie " << &lie - lies;
    }
}

// ---- Streams ------------------------------------------------------------------------------------

Outcome indexed_filter(const std::string& input, const DecodePoints& points, uint64_t threads,
                       size_t span, std::string_view memory = "256MiB") {
    Outcome outcome;
    FilterReport report;
    const Options options = options_with({{"memory", memory}});
    const Cancel never;
    const auto source = memory_source(as_bytes(input));
    const auto reader = open_indexed_filter(*source, std::make_shared<const DecodePoints>(points),
                                            options, never, threads, report);
    std::string buffer(span, '\0');
    try {
        for (;;) {
            const size_t count = reader->read({bytes_of(buffer), buffer.size()});
            if (count == 0) break;
            outcome.bytes.append(buffer, 0, count);
        }
        reader->finish();
    } catch (const Error& error) {
        outcome.code = error.code();
        outcome.offset = error.fault().offset;
        outcome.message = error.what();
    }
    if (report.codec != nullptr) outcome.codec = report.codec;
    outcome.trailing = report.trailing;
    outcome.verified = report.verified;
    return outcome;
}

// More may come before it, proven by the checksums of the index.
void expect_same_end(const Outcome& indexed, Outcome plain) {
    EXPECT_GE(indexed.verified, plain.verified);
    EXPECT_TRUE(indexed.bytes.starts_with(plain.bytes));
    EXPECT_LE(indexed.bytes.size(), std::max<size_t>(indexed.verified, plain.bytes.size()));
    plain.verified = indexed.verified;
    plain.bytes = indexed.bytes;
    EXPECT_EQ(indexed, plain);
    EXPECT_NE(plain.code, SHF_OK);
}

TEST(IndexedFilter, gives_what_the_filter_gives) {
    const std::string data = text(2 * MiB) + noise(MiB) + text(2 * MiB);
    for (const char* codec : codecs)
        for (const size_t frame : {data.size(), 3 * MiB / 2}) {
            const std::string packed = compress_in_frames(codec, data, frame);
            FilterReport report;
            PointRecorder recorder;
            const Options options;
            const auto source = memory_source(as_bytes(packed));
            const auto filter_to_index =
                open_recorded_filter(source->open_sequential(0), options, report, recorder);
            std::string all(data.size() + 1, '\0');
            for (size_t at = 0, count = 1; count > 0; at += count)
                count = filter_to_index->read({bytes_of(all) + at, all.size() - at});
            all.pop_back();
            ASSERT_TRUE(all == data);
            const DecodePoints points = recorder.finish(report.codec);
            for (const uint64_t threads : {1U, 2U, 5U}) {
                EXPECT_EQ(indexed_filter(packed, points, threads, 70'001), filter(packed))
                    << codec << ' ' << frame << ' ' << threads;
                EXPECT_EQ(indexed_filter(packed, points, threads, 4 * MiB, "1MiB"), filter(packed));
            }
            // The same bytes before the same error, whatever is wrong.
            for (size_t i = 1; i <= 3; ++i) {
                std::string damaged = packed;
                char& byte = damaged[i * packed.size() / 4];
                byte = static_cast<char>(byte ^ 0x41);
                expect_same_end(indexed_filter(damaged, points, 2, 70'001),
                                filter(damaged, {}, 0, 70'001));
            }
            const std::string cut = packed.substr(0, packed.size() / 2);
            expect_same_end(indexed_filter(cut, points, 2, 70'001), filter(cut, {}, 0, 70'001));
            // An index that is wrong says nothing of the shard.
            DecodePoints wrong = points;
            wrong.sums[wrong.size() / 2] ^= 1;
            EXPECT_EQ(indexed_filter(packed, wrong, 2, 70'001), filter(packed, {}, 0, 70'001));
        }
}

TEST(IndexedFilter, skips_to_any_place) {
    const std::string tar = tar_of(60, 200'000), packed = gzip(tar);
    const auto index = build_index_of(packed);
    const Options options;
    const Cancel never;
    for (const uint64_t threads : {1U, 3U}) {
        const auto source = memory_source(as_bytes(packed));
        FilterReport report;
        const auto reader =
            open_indexed_filter(*source, index->points(), options, never, threads, report);
        std::minstd_rand random(3);
        std::string bytes(50'000, '\0');
        for (size_t at = 0;;) {
            const size_t jump = random() % (random() % 3 == 0 ? 5 * MiB : 60'000);
            if (at + jump > tar.size()) break;
            ASSERT_TRUE(reader->skip(jump));
            at += jump;
            const size_t count = reader->read({bytes_of(bytes), bytes.size()});
            ASSERT_TRUE(bytes.substr(0, count) == tar.substr(at, count)) << at;
            at += count;
        }
        EXPECT_FALSE(reader->skip(tar.size() + 1));
    }
}

}  // namespace
}  // namespace shf::test
