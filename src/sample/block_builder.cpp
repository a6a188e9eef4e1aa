#include "sample/block_builder.h"

#include <algorithm>
#include <cstring>

namespace shf {

namespace {

// The bound on what one kept sample may hold: `allowance` + 8 times its own size.
constexpr uint64_t allowance = 64 * 1024;
constexpr uint64_t times = 8;
// Where copies go. With the tables of as many samples as fit it stays below the allowance.
constexpr size_t arena_size = 24 * 1024;

// Rough size of the tables: what a sample and a field take besides their payload.
constexpr uint64_t sample_row = 6 * sizeof(uint64_t) + sizeof(Sample) + 32;
constexpr uint64_t field_row = 3 * sizeof(uint64_t);
constexpr uint64_t block_overhead = 512;
// With so much payload in a block its price does not count any more, and the consumer may have it.
constexpr uint64_t enough = 512 * 1024;

}  // namespace

BlockBuilder::BlockBuilder(Pool& pool, const Cancel& cancel, bool single_samples,
                           std::function<void(BlockRef)> full)
    : pool_(pool), cancel_(cancel), single_samples_(single_samples), full_(std::move(full)) {}

// What the lists of names and the URLs that the block has so far, and these ones, take.
uint64_t BlockBuilder::shared_bytes(const Schema& schema, const Origin& origin) const {
    uint64_t bytes = shared_bytes_;
    if (schemas_.empty() || schemas_.back().get() != &schema)
        bytes += sizeof schema + schema.names.size() + schema.ends.size() * sizeof schema.ends[0];
    if (origins_.empty() || origins_.back().get() != &origin)
        bytes += sizeof origin + origin.url.size();
    return bytes;
}

BlockBuilder::Placement BlockBuilder::place(const LooseSample& sample) const {
    const std::span<const LooseField> fields = sample.fields;
    uint64_t payload = 0, storage_bytes = 0, new_bytes = 0;
    const StorageRef* last = nullptr;
    for (const LooseField& field : fields) {
        payload += field.size;
        if (last && *last == *field.storage) continue;
        last = field.storage;
        storage_bytes += (*last)->capacity;
        if (std::find(storages_.begin(), storages_.end(), *last) == storages_.end())
            new_bytes += (*last)->capacity;
    }
    const uint64_t own_tables =
        sample_row + fields.size() * field_row + sample.key.size() + block_overhead;
    const bool copied =
        payload <= always_copied ||
        (single_samples_ ? storage_bytes > 2 * payload
                         : storage_bytes + own_tables > allowance + times * payload);
    if (offset_.empty()) return {payload, copied, true};
    const bool in_arena = copied && arena_ && payload <= arena_->capacity - arena_used_;
    if (copied) new_bytes = in_arena ? 0 : std::max<uint64_t>(payload, arena_size);
    const uint64_t tables = own_tables + offset_.size() * sample_row + start_.size() * field_row +
                            keys_.size() + shared_bytes(*sample.schema, *sample.origin);
    // One arena to a block: bindings are fastest over a single buffer.
    const bool joins =
        !single_samples_ && !(copied && arena_ && !in_arena) &&
        storage_bytes_ + new_bytes + tables <= allowance + times * std::min(smallest_, payload);
    return {payload, copied, joins};
}

bool BlockBuilder::accepts(const LooseSample& sample) const {
    return place(sample).joins;
}

uint64_t BlockBuilder::add(const LooseSample& sample) {
    const auto [payload, copied, joins] = place(sample);
    if (!joins) flush();
    shared_bytes_ = shared_bytes(*sample.schema, *sample.origin);
    if (origins_.empty() || origins_.back() != sample.origin) origins_.push_back(sample.origin);
    if (schemas_.empty() || schemas_.back() != sample.schema) schemas_.push_back(sample.schema);
    if (first_field_.empty()) {
        first_field_.push_back(0);
        key_.push_back(0);
    }
    if (copied)
        copy(sample.fields, payload);
    else
        refer(sample.fields);
    if (source_)
        for (const LooseField& field : sample.fields) {
            deferred_.push_back({field.offset + field.size, field.rest});
            deferred_bytes_ += field.rest;
        }
    smallest_ = std::min(smallest_, payload);
    payload_bytes_ += payload;
    keys_ += sample.key;
    key_.push_back(keys_.size());
    first_field_.push_back(start_.size());
    schema_.push_back(schemas_.size() - 1);
    origin_.push_back(origins_.size() - 1);
    offset_.push_back(sample.offset);
    if (single_samples_ || payload_bytes_ + deferred_bytes_ >= enough) flush();
    return payload;
}

uint64_t BlockBuilder::buffer_for(const StorageRef& storage) {
    // The latest ones first: a sample's fields lie in one storage, as a rule.
    for (size_t i = storages_.size(); i-- > 0;)
        if (storages_[i] == storage) return i;
    storages_.push_back(storage);
    storage_bytes_ += storage->capacity;
    return storages_.size() - 1;
}

void BlockBuilder::copy(std::span<const LooseField> fields, uint64_t payload) {
    if (!arena_ || arena_->capacity - arena_used_ < payload) {
        const uint64_t size = single_samples_ ? payload : std::max<uint64_t>(payload, arena_size);
        arena_ = pool_.acquire(static_cast<size_t>(size), cancel_);
        arena_used_ = 0;
        arena_buffer_ = buffer_for(arena_);
    }
    for (const LooseField& field : fields) {
        if (field.size > 0) std::memcpy(arena_->data + arena_used_, field.data, field.size);
        buffer_.push_back(arena_buffer_);
        start_.push_back(arena_used_);
        arena_used_ += static_cast<size_t>(field.size);
        stop_.push_back(arena_used_);
    }
}

void BlockBuilder::refer(std::span<const LooseField> fields) {
    for (const LooseField& field : fields) {
        buffer_.push_back(buffer_for(*field.storage));
        const auto begin = static_cast<uint64_t>(field.data - (*field.storage)->data);
        start_.push_back(begin);
        stop_.push_back(begin + field.size);
    }
}

void BlockBuilder::flush() {
    if (offset_.empty()) return;
    // Bindings make one view per buffer, so a buffer is as short as the fields in it allow.
    buffers_.clear();
    for (const StorageRef& storage : storages_)
        buffers_.emplace_back(storage->data, storage == arena_ ? arena_used_ : storage->capacity);
    BlockRef block(Block::make({.first_field = first_field_,
                                .schema = schema_,
                                .key = key_,
                                .origin = origin_,
                                .buffer = buffer_,
                                .start = start_,
                                .stop = stop_,
                                .offset = offset_,
                                .deferred = deferred_,
                                .source = source_,
                                .keys = keys_,
                                .storages = storages_,
                                .schemas = schemas_,
                                .origins = origins_,
                                .buffers = buffers_,
                                .payload_bytes = payload_bytes_}));
    for (auto* table :
         {&first_field_, &schema_, &key_, &origin_, &buffer_, &start_, &stop_, &offset_})
        table->clear();
    deferred_.clear();
    keys_.clear();
    storages_.clear();
    schemas_.clear();
    origins_.clear();
    arena_ = {};
    arena_used_ = 0;
    storage_bytes_ = payload_bytes_ = deferred_bytes_ = shared_bytes_ = 0;
    smallest_ = UINT64_MAX;
    full_(std::move(block));
}

}  // namespace shf
