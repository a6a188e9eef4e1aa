// shf_batch_*.
#include "api/handles.h"
#include "batch/arrow.h"
#include "batch/batch.h"
#include "batch/dlpack.h"
#include "batch/sample_batch.h"

#include <algorithm>

using shf::Batch;
using shf::batch_of;
using shf::BatchColumn;
using shf::Error;
using shf::guard;
using shf::guard_without_skips;

static_assert(sizeof(shf_array) == 5 * 16 + 4 * sizeof(void*) &&
              offsetof(shf_array, shape) == 4 * sizeof(void*));

namespace {

int32_t kind_of(const BatchColumn& column) {
    using Kind = shf::ColumnSpec::Kind;
    switch (column.kind) {
        case Kind::bytes: return SHF_COLUMN_BYTES;
        case Kind::text: return SHF_COLUMN_TEXT;
        case Kind::json: return SHF_COLUMN_JSON;
        case Kind::msgpack: return SHF_COLUMN_MSGPACK;
        default: return SHF_COLUMN_ARRAY;
    }
}

shf_array array_of(const BatchColumn& column, uint64_t rows) {
    shf_array array{};
    array.data = column.values ? column.values->data : nullptr;
    array.size = static_cast<size_t>(column.bytes);
    array.shapes = column.shapes();
    array.row_ndim = column.row.ndim;
    array.dtype = static_cast<int32_t>(column.dtype);
    array.kind = kind_of(column);
    if (column.ragged) {
        array.offsets = column.offsets();
        array.ndim = 1;
        array.shape[0] = static_cast<int64_t>(column.bytes / shf::traits_of(column.dtype).size);
    } else {
        array.ndim = column.row.ndim + 1;
        array.shape[0] = static_cast<int64_t>(rows);
        std::copy_n(column.row.shape.begin(), column.row.ndim, array.shape + 1);
    }
    return array;
}

Batch& checked(shf_batch* batch) {
    if (!batch) throw Error(SHF_E_USAGE, "the batch is NULL");
    return *batch_of(batch);
}

}  // namespace

extern "C" {

int32_t shf_batch_make(shf_batch** out, shf_sample* const* samples, size_t count,
                       const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out || !samples) throw Error(SHF_E_USAGE, "shf_batch_make: an argument is NULL");
        if (count == 0) throw Error(SHF_E_USAGE, "a batch of no samples");
        std::vector<shf::Sample*> list(count);
        for (size_t i = 0; i < count; ++i) {
            if (!samples[i]) throw Error(SHF_E_USAGE, "samples[" + std::to_string(i) + "] is NULL");
            list[i] = reinterpret_cast<shf::Sample*>(samples[i]);
        }
        *out = shf::handle_of(shf::make_batch(list, shf::values_of(options), [](uint64_t bytes) {
                                  return shf::unpooled(static_cast<size_t>(bytes));
                              }).release());
        return SHF_OK;
    });
}

shf_batch* shf_batch_ref(shf_batch* batch) {
    if (batch) batch_of(batch)->ref();
    return batch;
}

void shf_batch_unref(shf_batch* batch) {
    if (batch) batch_of(batch)->unref();
}

size_t shf_batch_row_count(const shf_batch* batch) {
    return batch ? static_cast<size_t>(batch_of(batch)->rows) : 0;
}

size_t shf_batch_column_count(const shf_batch* batch) {
    return batch ? batch_of(batch)->columns.size() : 0;
}

int32_t shf_batch_column(const shf_batch* batch, size_t index, shf_bytes* name, shf_array* array) {
    if (name) *name = {};
    if (array) *array = {};
    if (!batch || index >= batch_of(batch)->columns.size()) return SHF_E_NOT_FOUND;
    const BatchColumn& column = batch_of(batch)->columns[index];
    if (name) *name = shf::borrowed(column.name);
    if (array) *array = array_of(column, batch_of(batch)->rows);
    return SHF_OK;
}

int32_t shf_batch_find(const shf_batch* batch, const char* name, size_t name_size, size_t* index) {
    if (index) *index = 0;
    if (!batch || !name || !index) return SHF_E_NOT_FOUND;
    const std::string_view wanted = shf::name_of(name, name_size);
    const auto& columns = batch_of(batch)->columns;
    for (size_t i = 0; i < columns.size(); ++i)
        if (columns[i].name == wanted) {
            *index = i;
            return SHF_OK;
        }
    return SHF_E_NOT_FOUND;
}

int32_t shf_batch_key(const shf_batch* batch, size_t row, shf_bytes* out) {
    if (out) *out = {};
    if (!batch || !out || row >= batch_of(batch)->rows) return SHF_E_NOT_FOUND;
    *out = shf::borrowed(batch_of(batch)->text_of(batch_of(batch)->keys(), row));
    return SHF_OK;
}

int32_t shf_batch_dlpack(shf_batch* batch, size_t index, int32_t versioned, void** out,
                         shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        Batch& columns = checked(batch);
        if (!out) throw Error(SHF_E_USAGE, "shf_batch_dlpack: out is NULL");
        if (index >= columns.columns.size())
            throw Error(SHF_E_NOT_FOUND, "no column of number " + std::to_string(index));
        *out = shf::to_dlpack(columns, index, versioned != 0);
        return SHF_OK;
    });
}

int32_t shf_batch_arrow(shf_batch* batch, void* array, void* schema, shf_error* error) {
    return guard(error, [&] {
        if (!array || !schema) throw Error(SHF_E_USAGE, "shf_batch_arrow: an argument is NULL");
        shf::to_arrow(checked(batch), array, schema);
        return SHF_OK;
    });
}
}
