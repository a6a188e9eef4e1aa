#include "dataset/dataset_shard.h"

#include "core/error.h"
#include "core/options.h"
#include "format/zip_directory.h"
#include "index/index_store.h"

#include <array>
#include <utility>
#include <vector>

namespace shf {

std::unique_ptr<DatasetShard> open_dataset_shard(const std::string& url, uint64_t shard,
                                                 const DatasetContext& context) {
    auto source = open_source(url, context.options, context.cancel);
    if (!source->seekable() || !source->size())
        throw Error(SHF_E_USAGE, "a dataset needs files that can be read at any offset",
                    "copy the shard to a disk, or read it with a stream");
    std::array<uint8_t, zip_head> start{};
    const auto head = std::span(start).first(source->read(0, start));
    if (is_zip(head, url, context.options))
        return zip_dataset_shard(url, shard, std::move(source), context);
    auto index = open_index(url, *source, context.options, context.cancel);
    return tar_dataset_shard(url, shard, std::move(source), std::move(index), context);
}

BlockRef make_sample(std::string_view key, uint64_t offset, std::shared_ptr<const Origin> origin,
                     std::shared_ptr<const Schema> schema, StorageRef storage,
                     std::span<const PlacedField> fields) {
    const size_t count = fields.size();
    std::array<uint64_t, 24> few;
    std::vector<uint64_t> many;
    std::span<uint64_t> table = few;
    if (3 * count > few.size()) {
        many.resize(3 * count);
        table = many;
    }
    const auto buffer = table.first(count);
    const auto begin = table.subspan(count, count), end = table.subspan(2 * count, count);
    uint64_t payload = 0;
    for (size_t i = 0; i < count; ++i) {
        buffer[i] = 0;
        begin[i] = fields[i].start;
        end[i] = fields[i].start + fields[i].size;
        payload += fields[i].size;
    }
    const std::array<uint64_t, 2> first_field{0, count}, keys{0, key.size()};
    const std::array<uint64_t, 1> zero{0}, offsets{offset};
    const std::span<const uint8_t> bytes(storage->data, storage->capacity);
    return BlockRef(Block::make({.first_field = first_field,
                                 .schema = zero,
                                 .key = keys,
                                 .origin = zero,
                                 .buffer = buffer,
                                 .start = begin,
                                 .stop = end,
                                 .offset = offsets,
                                 .keys = key,
                                 .storages = {&storage, 1},
                                 .schemas = {&schema, 1},
                                 .origins = {&origin, 1},
                                 .buffers = {&bytes, 1},
                                 .payload_bytes = payload}));
}

}  // namespace shf
