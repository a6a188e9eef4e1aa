// Samples of all shapes come out byte for byte, however they lie in the reader's memory, and a
// block that is kept does not keep much more than its samples.
#include "shard_expect.h"
#include "tar_builder.h"

#include <random>

namespace shf::test {
namespace {

// Bytes that tell where in which field they stand.
std::string payload(size_t size, uint64_t seed) {
    std::string out(size, '\0');
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    for (char& c : out) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        c = static_cast<char>(state);
    }
    return out;
}

struct Shard {
    std::string bytes;
    std::vector<SeenSample> samples;

    void add(const std::string& key, const std::vector<size_t>& sizes) {
        SeenSample sample{.key = key, .fields = {}, .offset = bytes.size()};
        for (const size_t size : sizes) {
            std::string name = numbered("f", sample.fields.size());
            sample.fields.emplace_back(name, payload(size, bytes.size()));
            bytes += member(key + "." + name, sample.fields.back().second);
        }
        samples.push_back(std::move(sample));
    }
};

void expect_samples(const Shard& shard, const Options& options = {}) {
    const std::string bytes = shard.bytes + end_marker();
    for (const size_t chunk : {0U, 777U, 65536U})
        for (const bool size_known : {true, false})
            for (const bool alone : {true, false}) {
                const ShardResult result = read_shard(bytes, options, {chunk, size_known, alone});
                ASSERT_EQ(result.end.code, SHF_OK) << result.end.text;
                ASSERT_EQ(result.samples.size(), shard.samples.size());
                for (size_t i = 0; i < shard.samples.size(); ++i)
                    ASSERT_TRUE(result.samples[i] == shard.samples[i])
                        << "sample " << i << ", chunk " << chunk << ", size known " << size_known
                        << ", alone " << alone;
            }
}

// A field that stays behind in its slab must not take the next one's place with it.
TEST(Grouping, small_field_between_large_ones) {
    Shard shard;
    shard.add("s", {100 << 10, 1000, 400 << 10});
    shard.add("t", {100 << 10, 0, 10, 600 << 10, 3, 1 << 20, 5});
    shard.add("u", {1});
    expect_samples(shard);
}

TEST(Grouping, every_mix_of_three_sizes) {
    Shard shard;
    const size_t sizes[] = {0, 1, 511, 512, 5000, 66000, 300000};
    size_t number = 0;
    for (const size_t first : sizes)
        for (const size_t second : sizes)
            for (const size_t third : sizes)
                shard.add(numbered("s", number++), {first, second, third});
    expect_samples(shard);
}

TEST(Grouping, random_shapes) {
    for (uint32_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(numbered("seed ", seed));
        std::mt19937 random(seed);
        Shard shard;
        const auto largest = 6 + random() % 14;
        while (shard.bytes.size() < (4 << 20)) {
            std::vector<size_t> sizes(1 + random() % 6);
            for (size_t& size : sizes) size = random() % (size_t{1} << (1 + random() % largest));
            shard.add(numbered("s", shard.samples.size()), sizes);
        }
        expect_samples(shard);
        expect_samples(shard, options_with({{"memory", "3MiB"}}));
    }
}

TEST(Grouping, members_passed_over_inside_a_sample) {
    Shard shard;
    shard.add("s", {1000});
    for (const size_t ignored : {100U, 70000U, 3000000U}) {
        shard.bytes += member("README", payload(ignored, 1));
        auto& fields = shard.samples[0].fields;
        fields.emplace_back(numbered("g", ignored), payload(500, ignored));
        shard.bytes += member("s." + fields.back().first, fields.back().second);
    }
    shard.add("t", {5});
    expect_samples(shard);
}

TEST(Grouping, many_fields_in_one_sample) {
    Shard shard;
    shard.add("s", std::vector<size_t>(3000, 100));
    shard.add("t", {9});
    expect_samples(shard);
}

// A kept sample, and a kept block, hold at most 64 KiB more than 8 times the (smallest) sample.
TEST(Grouping, kept_blocks_hold_little) {
    for (uint32_t seed = 1; seed <= 8; ++seed)
        for (const bool alone : {false, true}) {
            std::mt19937 random(seed);
            Shard shard;
            const auto largest = 4 + random() % 16;
            while (shard.bytes.size() < (3 << 20)) {
                std::vector<size_t> sizes(1 + random() % 4);
                for (size_t& size : sizes)
                    size = random() % (size_t{1} << (1 + random() % largest));
                shard.add(numbered("s", shard.samples.size()), sizes);
            }
            shard.bytes += end_marker();
            const Options options;
            Cancel cancel;
            Stats stats;
            const std::unique_ptr<Pool, PoolDrop> pool(Pool::make(options));
            CollectingSink sink(options);
            const auto source = memory_source(
                {reinterpret_cast<const uint8_t*>(shard.bytes.data()), shard.bytes.size()});
            SampleReader(*source, std::make_shared<const Origin>(), {options, *pool, cancel, stats},
                         sink, {.single_samples = alone})
                .read();
            size_t count = 0;
            for (const BlockRef& block : sink.blocks()) {
                uint64_t smallest = UINT64_MAX;
                for (uint32_t i = 0; i < block->count; ++i)
                    smallest = std::min(smallest, block->payload_of(i));
                EXPECT_LE(block->storage_bytes(), 64 * 1024 + 8 * smallest)
                    << block->count << " samples, alone " << alone << ", seed " << seed;
                EXPECT_TRUE(!alone || block->count == 1);
                count += block->count;
            }
            EXPECT_EQ(count, shard.samples.size());
        }
}

}  // namespace
}  // namespace shf::test
