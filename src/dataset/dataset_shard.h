// One shard of a dataset: its samples by number.
#pragma once

#include "core/recycler.h"
#include "dataset/scratch_pool.h"
#include "dataset/shard_file.h"
#include "sample/block.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shf {

class ShardIndex;

// Does not change once it is made: any number of threads, and forked children too.
class DatasetShard {
  public:
    virtual ~DatasetShard() = default;
    [[nodiscard]] virtual size_t samples() const = 0;
    [[nodiscard]] virtual std::string_view key(size_t sample) const = 0;
    // Where a sample starts in the file, and its payload in bytes.
    [[nodiscard]] virtual uint64_t offset(size_t sample) const = 0;
    [[nodiscard]] virtual uint64_t bytes(size_t sample) const = 0;
    // Reads a sample: a block with it alone. Throws Error with member and offset.
    [[nodiscard]] virtual BlockRef read(size_t sample) const = 0;
};

// What the shards of one dataset share; outlives them.
struct DatasetContext {
    const Options& options;
    const Cancel& cancel;
    FileBudget& budget;
    ScratchPool& scratches;
    Recycler& memory;
};

// Lists the samples of the shard at `url`, number `shard` of its dataset. Throws Error.
std::unique_ptr<DatasetShard> open_dataset_shard(const std::string& url, uint64_t shard,
                                                 const DatasetContext& context);
// For open_dataset_shard. `source` is the open shard.
std::unique_ptr<DatasetShard> tar_dataset_shard(const std::string& url, uint64_t shard,
                                                std::unique_ptr<Source> source,
                                                std::shared_ptr<const ShardIndex> index,
                                                const DatasetContext& context);
std::unique_ptr<DatasetShard> zip_dataset_shard(const std::string& url, uint64_t shard,
                                                std::unique_ptr<Source> source,
                                                const DatasetContext& context);

// One field in `storage`.
struct PlacedField {
    size_t start, size;
};
// A block with one sample, whose fields lie in `storage`.
BlockRef make_sample(std::string_view key, uint64_t offset, std::shared_ptr<const Origin> origin,
                     std::shared_ptr<const Schema> schema, StorageRef storage,
                     std::span<const PlacedField> fields);

}  // namespace shf
