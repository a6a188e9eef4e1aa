// Reads one shard from memory as the engine would, and tells all that came out of it.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "core/stats.h"
#include "io/source.h"
#include "sample/sample_reader.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf::test {

struct SeenSample {
    std::string key;
    std::vector<std::pair<std::string, std::string>> fields;  // name and bytes, in order
    uint64_t offset = 0;

    bool operator==(const SeenSample&) const = default;
};

struct SeenFault {
    int32_t code = SHF_OK;
    uint64_t offset = no_offset;
    std::string text;
    size_t after = 0;  // samples delivered before it

    bool operator==(const SeenFault&) const = default;
};

// Counters of what was in the shard; later ones tell of time and memory.
inline constexpr int32_t shard_stats = SHF_STAT_EMPTY_SHARDS + 1;

struct ShardResult {
    std::vector<SeenSample> samples;
    std::vector<SeenFault> bad_samples;  // skipped ones
    SeenFault end;                       // why the shard ended early, SHF_OK at its proven end
    std::vector<uint64_t> stats;
    uint64_t memory_peak = 0;

    [[nodiscard]] uint64_t stat(int32_t number) const {
        return stats.at(static_cast<size_t>(number));
    }
    [[nodiscard]] bool same_as(const ShardResult& other) const {  // memory may differ
        return samples == other.samples && bad_samples == other.bad_samples && end == other.end &&
               stats == other.stats;
    }
};

inline void PrintTo(const SeenFault& f, std::ostream* to) {
    *to << shf_error_name(f.code) << " after " << f.after << " samples: " << f.text;
}

inline void PrintTo(const ShardResult& r, std::ostream* to) {
    *to << r.samples.size() << " samples (";
    for (const SeenSample& s : r.samples) *to << escape(s.key) << '*' << s.fields.size() << ' ';
    *to << "), " << r.bad_samples.size() << " bad ones, ";
    for (const SeenFault& f : r.bad_samples) PrintTo(f, to);
    PrintTo(r.end, to);
}

using Settings = std::initializer_list<std::pair<std::string_view, std::string_view>>;

inline Options options_with(Settings settings) {
    Options options;
    for (const auto& [name, value] : settings) options.set(name, value);
    return options;
}

// How bytes come and samples go.
struct Way {
    size_t chunk = 0;        // most bytes of one read, 0: no bound
    bool size_known = true;  // before reading
    bool alone = false;      // one sample to a block, as for a shuffle buffer
};

inline SeenSample seen_sample(const Block& block, uint32_t number) {
    SeenSample sample{std::string(block.key_of(number)), {}, block.offset[number]};
    for (uint64_t f = 0; f < block.first_field[number + 1] - block.first_field[number]; ++f) {
        const FieldView field = block.field_of(number, f);
        sample.fields.emplace_back(
            field.name, std::string(reinterpret_cast<const char*>(field.data), field.size));
    }
    return sample;
}

// Collects what a reader delivers, by the rules of on_error.
class CollectingSink final : public SampleSink {
  public:
    explicit CollectingSink(const Options& options) : options_(options) {}

    void deliver(BlockRef block) override {
        delivered_ += block->count;
        blocks_.push_back(std::move(block));
    }
    void bad_sample(Fault fault, bool /*wanted*/) override {
        if (options_.on_error != OnError::skip_sample || !shf::skippable(fault.code))
            throw Error(std::move(fault));
        bad_.push_back(seen(fault));
    }

    [[nodiscard]] SeenFault seen(const Fault& fault) const {
        return {fault.code, fault.offset, fault.text(), delivered_};
    }
    // Called when the reader is gone: memory that a block failed to hold on to has other bytes now.
    [[nodiscard]] std::vector<SeenSample> samples() const {
        std::vector<SeenSample> all;
        for (const BlockRef& block : blocks_)
            for (uint32_t i = 0; i < block->count; ++i) all.push_back(seen_sample(*block, i));
        return all;
    }
    [[nodiscard]] std::vector<SeenFault>& bad() { return bad_; }
    [[nodiscard]] const std::vector<BlockRef>& blocks() const { return blocks_; }

  private:
    const Options& options_;
    std::vector<BlockRef> blocks_;
    std::vector<SeenFault> bad_;
    size_t delivered_ = 0;
};

struct PoolDrop {
    void operator()(Pool* pool) const noexcept {
        pool->close();
        pool->drop();
    }
};

inline ShardResult read_shard(std::string_view bytes, const Options& options = {}, Way way = {},
                              std::string url = "test") {
    ShardResult result;
    Cancel cancel;
    Stats stats;
    const std::unique_ptr<Pool, PoolDrop> pool(Pool::make(options));
    CollectingSink sink(options);
    const auto source = memory_source(
        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, way.chunk, way.size_known);
    const auto origin = std::make_shared<const Origin>(
        Origin{.url = std::move(url), .shard = 0, .epoch = 0, .lane = 0});
    try {
        SampleReader(*source, origin, {options, *pool, cancel, stats}, sink,
                     {.single_samples = way.alone})
            .read();
    } catch (const Error& error) {
        result.end = sink.seen(error.fault());
    }
    result.samples = sink.samples();
    result.bad_samples = std::move(sink.bad());
    for (int32_t i = 0; i < shard_stats; ++i) result.stats.push_back(stats.get(i));
    result.memory_peak = pool->peak();
    return result;
}

// "key{field=bytes field=bytes} ..." - what most tests compare.
inline std::string listing(const ShardResult& result) {
    std::string out;
    for (const SeenSample& sample : result.samples) {
        out += (out.empty() ? "" : " ") + sample.key + '{';
        for (size_t i = 0; i < sample.fields.size(); ++i)
            out += (i == 0 ? "" : " ") + sample.fields[i].first + '=' + sample.fields[i].second;
        out += '}';
    }
    return out;
}

}  // namespace shf::test
