// One shard of a dataset: its samples by number.
#pragma once

#include "core/recycler.h"
#include "dataset/scratch_pool.h"
#include "dataset/shard_file.h"
#include "sample/block.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shf {

class FieldFilter;
class ShardIndex;
class StretchCache;

// Does not change once it is made: any number of threads, and forked children too.
class DatasetShard {
  public:
    virtual ~DatasetShard() = default;
    [[nodiscard]] virtual size_t samples() const = 0;
    [[nodiscard]] virtual std::string_view key(size_t sample) const = 0;
    // What the keys of its samples, or the names of its members, take in memory, in bytes.
    [[nodiscard]] virtual uint64_t names_size() const = 0;
    // The names of all its fields, wanted or not.
    [[nodiscard]] virtual const Schema& schema(size_t sample) const = 0;
    // Where a sample starts in the file, and the payload of its wanted fields in bytes.
    [[nodiscard]] virtual uint64_t offset(size_t sample) const = 0;
    [[nodiscard]] virtual uint64_t bytes(size_t sample) const = 0;
    // Samples of one number are best read by one thread: they come out of one stretch of a
    // compressed shard.
    [[nodiscard]] virtual uint64_t stretch(size_t sample) const { return sample; }
    // Reads the wanted fields of samples, perhaps none; `samples` ascends. out[i] becomes
    // samples[i], with a reference for the caller. Small ones share a block; one that is kept holds
    // at most 64 KiB and 8 times its own size. Throws Error with member and offset; then there are
    // none.
    void read(std::span<const size_t> samples, std::span<Sample*> out) const;
    // The same for one: a block with it alone.
    [[nodiscard]] BlockRef read(size_t sample) const;

  protected:
    [[nodiscard]] virtual const ShardFile& file() const = 0;
    // Asks for what will be looked up of a sample.
    virtual void prefetch(size_t /*sample*/) const {}
    // At least what memory a sample takes in a block with others.
    [[nodiscard]] virtual uint64_t room(size_t sample) const = 0;
    // Whether offset() is a place in the file, and not the number of a member.
    [[nodiscard]] virtual bool has_places() const { return true; }
    // Whether the bytes of a sample prove themselves. Else read() asks after the last one whether
    // the file is still the one that was opened.
    [[nodiscard]] virtual bool has_checksums() const = 0;
    // Reads samples into one block; one alone, or several that take little room.
    [[nodiscard]] virtual BlockRef read_block(std::span<const size_t> samples,
                                              Source& source) const = 0;

  private:
    void announce(std::span<const size_t> samples, Source& source) const;
};

// What the shards of one dataset share; outlives them.
struct DatasetContext {
    const Options& options;
    const FieldFilter& fields;
    const Cancel& cancel;
    const Sources& sources;
    FileBudget& budget;
    ScratchPool& scratches;
    Recycler& memory;
    StretchCache& stretches;  // of compressed shards
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
std::unique_ptr<DatasetShard> libarchive_dataset_shard(const std::string& url, uint64_t shard,
                                                       std::unique_ptr<Source> source,
                                                       const DatasetContext& context);

// A sample that was read, whose fields are the next ones of a list.
struct PlacedSample {
    std::string_view key;
    uint64_t offset;
    const std::shared_ptr<const Schema>& schema;
};
// One field in `storage`.
struct PlacedField {
    size_t start, size;
};
// From so many bytes on the fields of a sample stay in the mapping of their shard.
inline constexpr uint64_t shown_from = 16 * 1024;

// A block with samples whose fields lie in `storage`.
BlockRef make_block(std::span<const PlacedSample> samples, std::span<const PlacedField> fields,
                    const std::shared_ptr<const Origin>& origin, StorageRef storage);

}  // namespace shf
