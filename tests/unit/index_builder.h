// Writes index files by docs/index-format.md and nothing else, true ones and others, and reads
// samples with them.
#pragma once

#include "shard_driver.h"
#include "tar_builder.h"

#include "dataset/dataset_shard.h"
#include "index/shard_index.h"
#include "index/tar_indexer.h"
#include "sample/sample_filter.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <optional>

namespace shf::test {

// ---- msgpack ------------------------------------------------------------------------------------

inline std::string big_endian(uint64_t value, size_t width) {
    std::string out(width, '\0');
    for (size_t i = width; i-- > 0; value >>= 8) out[i] = static_cast<char>(value & 255);
    return out;
}
inline std::string pack_number(uint64_t value) {
    if (value < 0x80) return big_endian(value, 1);
    if (value <= UINT8_MAX) return "\xcc" + big_endian(value, 1);
    if (value <= UINT16_MAX) return "\xcd" + big_endian(value, 2);
    if (value <= UINT32_MAX) return "\xce" + big_endian(value, 4);
    return "\xcf" + big_endian(value, 8);
}
inline std::string pack_text(std::string_view text) {  // of at most 31 bytes
    return static_cast<char>(0xa0 | text.size()) + std::string(text);
}
inline std::string pack_bytes(std::string_view bytes) {
    std::string head;
    if (bytes.size() <= UINT8_MAX)
        head = "\xc4" + big_endian(bytes.size(), 1);
    else if (bytes.size() <= UINT16_MAX)
        head = "\xc5" + big_endian(bytes.size(), 2);
    else
        head = "\xc6" + big_endian(bytes.size(), 4);
    return head.append(bytes);
}

// ---- Index files --------------------------------------------------------------------------------

template <typename Number>
std::string column_of(const std::vector<Number>& numbers) {
    std::string out;
    for (const Number number : numbers) {
        std::string bytes = big_endian(number, sizeof(Number));
        std::reverse(bytes.begin(), bytes.end());
        out += bytes;
    }
    return out;
}

// A whole file around a body, with the right checksum.
inline std::string index_file(std::string_view body, uint64_t version = 1) {
    return "\x94" + pack_text("shardfeed-index") + pack_number(version) +
           pack_number(XXH3_64bits(body.data(), body.size())) + pack_bytes(body);
}

// What an index says.
struct IndexParts {
    uint64_t size = 0, modified = 0;
    std::string head, tail;  // 16 bytes each
    uint64_t end = 0, leniency = 0;
    std::string schemas, keys;
    std::vector<uint32_t> key_ends, schema;
    std::vector<uint64_t> headers, offsets, sizes;
    std::optional<DecodePoints> points;  // of a compressed tar

    bool operator==(const IndexParts&) const = default;

    // Names and packed values of the body, in the order of the file.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> entries() const {
        std::vector<std::pair<std::string, std::string>> all = {
            {"size", pack_number(size)},
            {"modified", pack_number(modified)},
            {"head", pack_bytes(head)},
            {"tail", pack_bytes(tail)},
            {"end", pack_number(end)},
            {"leniency", pack_number(leniency)},
            {"schemas", pack_bytes(schemas)},
            {"keys", pack_bytes(keys)},
            {"key_ends", pack_bytes(column_of(key_ends))},
            {"schema", pack_bytes(column_of(schema))},
            {"headers", pack_bytes(column_of(headers))},
            {"offsets", pack_bytes(column_of(offsets))},
            {"sizes", pack_bytes(column_of(sizes))}};
        if (!points) return all;
        const std::vector<uint8_t>& windows = points->windows;
        all.insert(all.end(),
                   {{"codec", pack_bytes(points->codec)},
                    {"length", pack_number(points->length)},
                    {"starts", pack_bytes(column_of(points->starts))},
                    {"sums", pack_bytes(column_of(points->sums))},
                    {"places", pack_bytes(column_of(points->places))},
                    {"window_ends", pack_bytes(column_of(points->window_ends))},
                    {"windows", pack_bytes(std::string(windows.begin(), windows.end()))}});
        return all;
    }
    [[nodiscard]] std::string file() const {
        return index_file(pack_map(entries()), points ? 2 : 1);
    }

    static std::string pack_map(const std::vector<std::pair<std::string, std::string>>& entries) {
        std::string body = entries.size() < 16
                               ? std::string(1, static_cast<char>(0x80 | entries.size()))
                               : "\xde" + big_endian(entries.size(), 2);
        for (const auto& [name, value] : entries) body += pack_text(name) + value;
        return body;
    }
};

inline IndexParts parts_of(const ShardIndex& index) {
    const ShardIdentity& shard = index.identity();
    IndexParts parts;
    parts.size = shard.size;
    parts.modified = static_cast<uint64_t>(shard.modified);
    parts.head.assign(shard.head.begin(), shard.head.end());
    parts.tail.assign(shard.tail.begin(), shard.tail.end());
    parts.end = index.end();
    parts.leniency = index.leniency();
    std::vector<std::string> schemas;
    for (size_t i = 0; i < index.samples(); ++i) {
        parts.keys += index.key(i);
        parts.key_ends.push_back(static_cast<uint32_t>(parts.keys.size()));
        const std::string& names = index.schema(i)->names;
        const auto known = std::find(schemas.begin(), schemas.end(), names);
        parts.schema.push_back(static_cast<uint32_t>(known - schemas.begin()));
        if (known == schemas.end()) {
            schemas.push_back(names);
            parts.schemas += names + '\0';
        }
        parts.headers.push_back(index.header(i));
    }
    for (size_t i = 0; i < index.members(); ++i) {
        parts.offsets.push_back(index.offset(i));
        parts.sizes.push_back(index.size(i));
    }
    if (index.points()) parts.points = *index.points();
    return parts;
}

inline std::shared_ptr<const ShardIndex> parse_index(std::string_view file) {
    const StorageRef storage = unpooled(file.size());
    std::memcpy(storage->data, file.data(), file.size());
    return std::make_shared<const ShardIndex>(storage, file.size());
}

// The code of the error that the file gives, SHF_OK when it is an index.
inline int32_t code_of_index(std::string_view file) {
    try {
        (void)parse_index(file);
    } catch (const Error& error) {
        return error.code();
    }
    return SHF_OK;
}

inline std::span<const uint8_t> as_bytes(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The index of a tar in memory.
inline std::shared_ptr<const ShardIndex> build_index_of(std::string_view tar,
                                                        const Options& options = {}) {
    const Cancel never;
    const auto source = memory_source(as_bytes(tar));
    return index_tar(*source, options, never);
}

// ---- Samples ------------------------------------------------------------------------------------

// A shard in memory and any index, as a dataset has them.
class IndexedTar {
  public:
    IndexedTar(std::string_view tar, std::shared_ptr<const ShardIndex> index,
               const Options& options = {})
        : options_(options),
          shard_(tar_dataset_shard("memory", 0, memory_source(as_bytes(tar)), std::move(index),
                                   context_)) {}

    [[nodiscard]] size_t samples() const { return shard_->samples(); }
    // Throws Error.
    [[nodiscard]] SeenSample read(size_t number) const {
        const BlockRef block = shard_->read(number);
        SeenSample sample{
            .key = std::string(block->key_of(0)), .fields = {}, .offset = block->offset[0]};
        for (uint64_t f = 0; f < block->first_field[1]; ++f) {
            const FieldView field = block->field_of(0, f);
            sample.fields.emplace_back(
                field.name, std::string(reinterpret_cast<const char*>(field.data), field.size));
        }
        return sample;
    }
    [[nodiscard]] BlockRef block(size_t number) const { return shard_->read(number); }

  private:
    // One for all: it is large, and fuzz targets make many shards.
    static Recycler& memory() {
        static Recycler* const shared = Recycler::make(1 << 20);
        return *shared;
    }
    const Options options_;
    const Cancel cancel_;
    FileBudget budget_;
    ScratchPool scratches_;
    StretchCache stretches_{1 << 23};
    const FieldFilter fields_{options_.fields};
    const Sources sources_{options_, cancel_};
    const DatasetContext context_{options_, fields_,    cancel_,  sources_,
                                  budget_,  scratches_, memory(), stretches_};
    const std::unique_ptr<DatasetShard> shard_;
};

// Whether these are all fields of a sample of the shard, or some of them.
inline bool is_true(const SeenSample& sample, const std::vector<SeenSample>& truth) {
    for (const SeenSample& whole : truth) {
        if (whole.key != sample.key) continue;
        return std::ranges::all_of(sample.fields, [&](const auto& field) {
            return std::ranges::find(whole.fields, field) != whole.fields.end();
        });
    }
    return false;
}

}  // namespace shf::test
