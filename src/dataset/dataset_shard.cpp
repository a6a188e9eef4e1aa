#include "dataset/dataset_shard.h"

#include "core/error.h"
#include "core/options.h"
#include "index/index_store.h"
#include "sample/shard_format.h"
#include "zip/zip_directory.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <memory_resource>
#include <utility>
#include <vector>

namespace shf {

std::unique_ptr<DatasetShard> open_dataset_shard(const std::string& url, uint64_t shard,
                                                 const DatasetContext& context) {
    auto source = context.sources.open(url);
    if (!source->seekable() || !source->size())
        throw Error(SHF_E_USAGE, "a dataset needs files that can be read at any offset",
                    "copy the shard to a disk, or read it with a stream");
    switch (shard_format(*source, url, context.options)) {
        case ShardFormat::zip: return zip_dataset_shard(url, shard, std::move(source), context);
        case ShardFormat::other:
            return libarchive_dataset_shard(url, shard, std::move(source), context);
        case ShardFormat::tar:
        case ShardFormat::compressed_tar: break;
    }
    auto index = open_index(url, *source, context.options, context.cancel);
    return tar_dataset_shard(url, shard, std::move(source), std::move(index), context);
}

// Says which bytes the samples are read from.
void DatasetShard::announce(std::span<const size_t> samples, Source& source) const {
    std::vector<ByteRange> ranges;
    ranges.reserve(samples.size());
    for (const size_t sample : samples) ranges.push_back({offset(sample), room(sample)});
    source.prefetch(ranges);
}

void DatasetShard::read(std::span<const size_t> samples, std::span<Sample*> out) const {
    // A block that small samples share, with its tables, stays below 64 KiB.
    constexpr uint64_t most_together = 36 * 1024;
    std::fill(out.begin(), out.end(), nullptr);
    for (const size_t sample : samples) prefetch(sample);
    const ShardFile::Lease source(file());
    if (samples.size() > 1 && has_places()) announce(samples, *source);
    try {
        for (size_t i = 0; i < samples.size();) {
            size_t count = 1;
            uint64_t together = samples.size() > 1 ? room(samples[i]) : 0;
            for (; i + count < samples.size(); ++count) {
                const uint64_t more = room(samples[i + count]);
                if (together > most_together || more > most_together - together) break;
                together += more;
            }
            Block* block = read_block(samples.subspan(i, count), *source).release();
            for (size_t k = 0; k < count; ++k) {
                if (k > 0) block->ref();
                out[i + k] = &block->samples[k];
            }
            i += count;
        }
        if (!has_checksums()) source->verify();
    } catch (const std::exception&) {
        for (Sample*& sample : out)
            if (Sample* gone = std::exchange(sample, nullptr)) gone->block->unref();
        source->verify();  // it may be another file by now: then that is why
        throw;
    }
}

// Without the lists, which take a few percent of the time of a small sample.
BlockRef DatasetShard::read(size_t sample) const {
    prefetch(sample);
    const ShardFile::Lease source(file());
    try {
        BlockRef block = read_block({&sample, 1}, *source);
        if (!has_checksums()) source->verify();
        return block;
    } catch (const std::exception&) {
        source->verify();  // as above
        throw;
    }
}

BlockRef make_block(std::span<const PlacedSample> samples, std::span<const PlacedField> fields,
                    const std::shared_ptr<const Origin>& origin, StorageRef storage) {
    const size_t n = samples.size(), m = fields.size();
    std::array<std::byte, 2048> stack;  // enough for most samples, and faster than the heap
    std::pmr::monotonic_buffer_resource memory(stack.data(), stack.size());
    std::pmr::vector<uint64_t> tables(6 * n + 2 + 3 * m, &memory);
    std::pmr::vector<std::shared_ptr<const Schema>> schemas(&memory);
    std::pmr::string many_keys(&memory);
    std::span<uint64_t> rest(tables);
    const auto take = [&rest](size_t count) {
        const std::span<uint64_t> table = rest.first(count);
        rest = rest.subspan(count);
        return table;
    };
    const auto first_field = take(n + 1), key_ends = take(n + 1);
    const auto schema = take(n), origins = take(n), offsets = take(n);
    const auto buffer = take(m), start = take(m), stop = take(m);
    uint64_t payload = 0;
    for (size_t i = 0; i < m; ++i) {
        start[i] = fields[i].start;
        stop[i] = fields[i].start + fields[i].size;
        payload += fields[i].size;
    }
    for (size_t i = 0; i < n; ++i) {
        size_t number = 0;  // few samples, which differ little
        while (number < schemas.size() && schemas[number] != samples[i].schema) ++number;
        if (number == schemas.size()) schemas.push_back(samples[i].schema);
        schema[i] = number;
        offsets[i] = samples[i].offset;
        first_field[i + 1] = first_field[i] + samples[i].schema->ends.size();
        key_ends[i + 1] = key_ends[i] + samples[i].key.size();
        if (n > 1) many_keys += samples[i].key;
    }
    std::shared_ptr<const Origin> shared_origin = origin;
    const std::span<const uint8_t> bytes(storage->data, storage->capacity);
    return BlockRef(Block::make({.first_field = first_field,
                                 .schema = schema,
                                 .key = key_ends,
                                 .origin = origins,
                                 .buffer = buffer,
                                 .start = start,
                                 .stop = stop,
                                 .offset = offsets,
                                 .keys = n == 1 ? samples[0].key : std::string_view(many_keys),
                                 .storages = {&storage, 1},
                                 .schemas = schemas,
                                 .origins = {&shared_origin, 1},
                                 .buffers = {&bytes, 1},
                                 .payload_bytes = payload}));
}

}  // namespace shf
