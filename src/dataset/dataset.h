// A Dataset is the samples of many shards, by number.
#pragma once

#include "batch/batch.h"
#include "codec/stretch_cache.h"
#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "dataset/name_table.h"
#include "io/source_context.h"
#include "io/urls.h"
#include "sample/sample_filter.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace shf {

// Read-only and without locks once it is open: any number of threads, and forked children
// use it as it is.
class Dataset final : private Names {
  public:
    // Opens the shards that the URLs name, with their indexes. Throws Error.
    Dataset(std::span<const char* const> urls, const Options& options);
    ~Dataset() override;
    Dataset(const Dataset&) = delete;
    Dataset& operator=(const Dataset&) = delete;

    [[nodiscard]] size_t count() const override { return first_.back(); }
    // The shard that sample `number` < count() is in, and the number of that shard's first sample.
    struct Place {
        size_t shard, first;
    };
    [[nodiscard]] Place place(size_t number) const;

    // A sample, with a reference for the caller. Throws Error.
    [[nodiscard]] Sample* get(size_t number) const;
    // The same for many; samples[i] is number numbers[i]. Throws what was wrong with the first bad
    // one in the list; then there are none.
    void get_many(std::span<const uint64_t> numbers, std::span<Sample*> samples) const;
    // A batch of them, made with these options, or (NULL) with those of the data set. Throws Error.
    [[nodiscard]] BatchRef get_batch(std::span<const uint64_t> numbers,
                                     const Options* options) const;
    // The number of the one sample with this key. Throws Error: NOT_FOUND, AMBIGUOUS.
    [[nodiscard]] size_t find(std::string_view key) const;

  private:
    struct Run;
    struct RunGroup;
    void add_names(const DatasetShard& shard);
    [[nodiscard]] std::vector<RunGroup> groups_of(std::span<const Run> runs) const;
    void get_group(RunGroup& group, std::span<Run> runs, std::span<Sample*> samples) const;
    void get_run(Run& run, std::span<Sample*> samples) const;
    [[nodiscard]] std::string_view name(size_t number) const override;
    [[nodiscard]] const NameTable& keys() const;

    const Options options_;
    const FieldFilter fields_;
    Cancel cancel_;  // of the opening
    SourceUse source_use_;
    FileBudget budget_;
    mutable ScratchPool scratches_;
    const std::unique_ptr<Recycler, Recycler::Drop> memory_;
    mutable StretchCache stretches_;
    const Sources sources_{options_, cancel_, source_use_};
    const DatasetContext context_;
    ShardList urls_;
    std::vector<std::unique_ptr<DatasetShard>> shards_;
    std::atomic<uint64_t> names_size_{0}, named_{0};  // of all shards, and their samples
    std::vector<size_t> first_;                       // of each shard, and the count of all samples
    // Made by the first who looks for a key.
    mutable std::atomic<const NameTable*> keys_{nullptr};
};

}  // namespace shf
