// shf_sample_*, shf_block_*.
#include "api/handles.h"

#include <algorithm>

using shf::block_of;
using shf::borrowed;
using shf::sample_of;

extern "C" {

shf_sample* shf_sample_ref(shf_sample* sample) {
    if (sample) sample_of(sample)->block->ref();
    return sample;
}

void shf_sample_unref(shf_sample* sample) {
    if (sample) sample_of(sample)->block->unref();
}

void shf_sample_key(const shf_sample* sample, shf_bytes* out) {
    if (!out) return;
    *out = {};
    if (sample) *out = borrowed(sample_of(sample)->block->key_of(sample_of(sample)->index));
}

void shf_sample_url(const shf_sample* sample, shf_bytes* out) {
    if (!out) return;
    *out = {};
    if (!sample) return;
    const auto& [block, i] = *sample_of(sample);
    *out = borrowed(block->origins[block->origin[i]]->url);
}

size_t shf_sample_field_count(const shf_sample* sample) {
    if (!sample) return 0;
    const auto& [block, i] = *sample_of(sample);
    return static_cast<size_t>(block->first_field[i + 1] - block->first_field[i]);
}

int32_t shf_sample_field(const shf_sample* sample, size_t index, shf_bytes* name, shf_bytes* data) {
    if (name) *name = {};
    if (data) *data = {};
    if (index >= shf_sample_field_count(sample)) return SHF_E_NOT_FOUND;
    const auto& [block, i] = *sample_of(sample);
    const shf::FieldView field = block->field_of(i, index);
    if (name) *name = borrowed(field.name);
    if (data) *data = {field.data, field.size};
    return SHF_OK;
}

int32_t shf_sample_find(const shf_sample* sample, const char* name, size_t name_size,
                        shf_bytes* out) {
    if (out) *out = {};
    if (!sample || (!name && name_size > 0)) return SHF_E_NOT_FOUND;
    const std::string_view wanted = shf::name_of(name, name_size);
    const auto& [block, i] = *sample_of(sample);
    const shf::Schema& schema = *block->schemas[block->schema[i]];
    for (size_t k = 0; k < schema.ends.size(); ++k) {
        if (schema.name(k) != wanted) continue;
        const shf::FieldView field = block->field_of(i, k);
        if (out) *out = {field.data, field.size};
        return SHF_OK;
    }
    return SHF_E_NOT_FOUND;
}

uint64_t shf_sample_info(const shf_sample* sample, int32_t what) {
    if (!sample) return UINT64_MAX;
    const auto& [block, i] = *sample_of(sample);
    const shf::Origin& origin = *block->origins[block->origin[i]];
    switch (what) {
        case SHF_SAMPLE_EPOCH: return origin.epoch;
        case SHF_SAMPLE_LANE: return origin.lane;
        case SHF_SAMPLE_SHARD: return origin.shard;
        case SHF_SAMPLE_OFFSET: return block->offset[i];
        case SHF_SAMPLE_PART: return origin.part;
        default: return UINT64_MAX;
    }
}

shf_block* shf_block_ref(shf_block* block) {
    if (block) block_of(block)->ref();
    return block;
}

void shf_block_unref(shf_block* block) {
    if (block) block_of(block)->unref();
}

size_t shf_block_sample_count(const shf_block* block) {
    return block ? block_of(block)->count : 0;
}

shf_sample* shf_block_sample(const shf_block* block, size_t index) {
    if (index >= shf_block_sample_count(block)) return nullptr;
    // The handle is a name for part of a block that does not change; references are counted.
    return shf::handle_of(const_cast<shf::Sample*>(&block_of(block)->samples[index]));
}

void shf_block_columns(const shf_block* block, size_t column_count, const uint64_t** columns,
                       size_t* counts) {
    const size_t asked = std::min<size_t>(column_count, SHF_BLOCK_COLUMNS);
    if (columns) std::fill_n(columns, asked, nullptr);
    if (counts) std::fill_n(counts, asked, size_t{0});
    if (!block || !columns) return;
    const shf::Block& b = *block_of(block);
    const size_t n = b.count, m = b.field_count;
    const struct {
        const uint64_t* table;
        size_t count;
    } all[SHF_BLOCK_COLUMNS] = {
        {b.first_field, n + 1}, {b.schema, n}, {b.key, n + 1}, {b.origin, n},
        {b.buffer, m},          {b.start, m},  {b.stop, m}};
    for (size_t k = 0; k < asked; ++k) {
        columns[k] = all[k].table;
        if (counts) counts[k] = all[k].count;
    }
}

void shf_block_keys(const shf_block* block, shf_bytes* out) {
    if (out) *out = block ? borrowed(block_of(block)->keys) : shf_bytes{};
}

int32_t shf_block_buffer(const shf_block* block, size_t index, shf_bytes* out) {
    if (out) *out = {};
    if (!block || index >= block_of(block)->buffers.size()) return SHF_E_NOT_FOUND;
    const auto buffer = block_of(block)->buffers[index];
    if (out) *out = {buffer.data(), buffer.size()};
    return SHF_OK;
}

int32_t shf_block_schema(const shf_block* block, size_t index, shf_bytes* out) {
    if (out) *out = {};
    if (!block || index >= block_of(block)->schemas.size()) return SHF_E_NOT_FOUND;
    if (out) *out = borrowed(block_of(block)->schemas[index]->names);
    return SHF_OK;
}

int32_t shf_block_url(const shf_block* block, size_t index, shf_bytes* out) {
    if (out) *out = {};
    if (!block || index >= block_of(block)->origins.size()) return SHF_E_NOT_FOUND;
    if (out) *out = borrowed(block_of(block)->origins[index]->url);
    return SHF_OK;
}
}
