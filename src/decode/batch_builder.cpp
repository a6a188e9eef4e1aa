#include "decode/batch_builder.h"

#include "core/error.h"
#include "decode/rows.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace shf {

namespace {

// A row up to this size is copied at once: handing it to another thread takes longer.
constexpr uint64_t small_row = 4096;

std::span<const uint8_t> bytes_of(const FieldView& field) {
    return {field.data, field.size};
}

// Says where a fault is.
Error placed(const Error& error, const Block& block, uint32_t sample, std::string_view field) {
    Fault fault = error.fault();
    fault.shard = block.origins[block.origin[sample]]->url;
    fault.member = escape(std::string(block.key_of(sample)) + "." + std::string(field));
    fault.offset = block.offset[sample];
    return Error(std::move(fault));
}

}  // namespace

BatchBuilder::BatchBuilder(BatchPlan& plan, uint64_t capacity, Allocate allocate)
    : plan_(plan), capacity_(capacity), allocate_(std::move(allocate)) {}

StorageRef BatchBuilder::allocate(uint64_t bytes) const {
    const uint64_t memory = plan_.options().memory;
    if (bytes > memory)
        throw BatchTooLarge(SHF_E_LIMIT,
                            "a batch of " + std::to_string(capacity_) + " rows takes " +
                                std::to_string(bytes) +
                                " bytes for one column, more than memory=" + std::to_string(memory),
                            "raise memory, or lower batch");
    return allocate_(bytes);
}

void BatchBuilder::reserve(Growing& growing, uint64_t more, uint64_t guess) {
    const uint64_t capacity = growing.memory ? growing.memory->capacity : 0;
    if (growing.memory && more <= capacity - growing.used) return;
    const uint64_t memory = std::max(growing.used + more, plan_.options().memory);
    const uint64_t wanted = std::max({growing.used + more, 2 * capacity, guess, uint64_t{64}});
    StorageRef larger = allocate(std::min(wanted, memory));
    if (growing.used > 0) std::memcpy(larger->data, growing.memory->data, growing.used);
    growing.memory = std::move(larger);
}

void BatchBuilder::append(Growing& growing, const void* bytes, uint64_t size, uint64_t guess) {
    reserve(growing, size, guess);
    if (size > 0) std::memcpy(growing.memory->data + growing.used, bytes, size);
    growing.used += size;
}

void BatchBuilder::append_bytes(Building& building, std::string_view bytes, uint64_t guess) {
    append(building.values, bytes.data(), bytes.size(), guess);
    const auto end = static_cast<int64_t>(building.values.used);
    append(building.offsets, &end, sizeof end, (rows_ + 2) * sizeof end);
}

void BatchBuilder::measure_column(size_t column, std::span<const uint8_t> field, uint64_t random) {
    const ColumnPlan& plan = plan_.columns()[column];
    Building& building = columns_[column];
    const ArrayType type = measured_[column] = plan.decoder->measure(field, random);
    if (!building.type) {
        if (building.even) {
            uint64_t bytes = 0;
            if (__builtin_mul_overflow(type.bytes(), capacity_, &bytes)) bytes = UINT64_MAX;
            building.values.memory = allocate(std::max<uint64_t>(bytes, 1));
        }
        building.type = type;
        building.typed_by = rows_;
        return;
    }
    if (building.even ? type == *building.type
                      : type.dtype == building.type->dtype && type.ndim == building.type->ndim)
        return;
    throw Error(SHF_E_FORMAT,
                "an array " + type.text() + " in a batch that begins with " + building.type->text(),
                building.even ? "ragged=pad and ragged=offsets take rows of unequal shape"
                              : "rows of one column have one dtype and number of dimensions");
}

void BatchBuilder::measure(const Block& block, uint32_t sample, const BatchPlan::Fields& fields,
                           uint64_t random) {
    for (size_t c = 0; c < fields.number.size(); ++c) {
        if (fields.number[c] < 0) continue;
        const FieldView field = block.field_of(sample, static_cast<uint64_t>(fields.number[c]));
        try {
            const ColumnPlan& plan = plan_.columns()[c];
            if (plan.decoder) {
                measure_column(c, bytes_of(field), random);
            } else if (field.size > plan_.options().max_decoded) {
                throw Error(SHF_E_LIMIT,
                            "a field of " + std::to_string(field.size) +
                                " bytes is larger than max_decoded=" +
                                std::to_string(plan_.options().max_decoded),
                            "raise max_decoded");
            } else if (plan.spec.kind == ColumnSpec::Kind::text &&
                       !is_utf8({reinterpret_cast<const char*>(field.data), field.size})) {
                throw Error(SHF_E_FORMAT, "text that is not UTF-8", "take the field as bytes");
            }
        } catch (const BatchTooLarge&) {
            throw;
        } catch (const Error& error) {
            throw placed(error, block, sample, field.name);
        }
    }
}

void BatchBuilder::add_empty(size_t column) {
    Building& building = columns_[column];
    if (!plan_.columns()[column].decoder) {
        append_bytes(building, {}, 0);
    } else if (building.waits) {
        // A row without elements; its shape is zeros.
        waiting_.push_back({.column = static_cast<uint32_t>(column), .row = rows_, .type = {}});
    } else {
        building.empty_rows.push_back(rows_);
    }
}

// What a row that failed left behind goes.
void BatchBuilder::forget_failed_row() {
    for (Building& building : columns_) {
        while (!building.empty_rows.empty() && building.empty_rows.back() >= rows_)
            building.empty_rows.pop_back();
        if (building.type && building.typed_by == rows_) building.type.reset();
        if (building.even || building.waits) continue;
        building.offsets.used = (rows_ + 1) * sizeof(int64_t);
        building.values.used = static_cast<uint64_t>(
            reinterpret_cast<const int64_t*>(building.offsets.memory->data)[rows_]);
    }
}

bool BatchBuilder::add(const Block& block, uint32_t sample) {
    const BatchPlan::Fields& fields = plan_.fields_of(block.schemas[block.schema[sample]]);
    const std::span<ColumnPlan> plans = plan_.columns();
    if (columns_.empty()) {
        columns_.resize(plans.size() + 2);
        measured_.resize(plans.size());
        for (size_t c = 0; c < columns_.size(); ++c) {
            const bool array = c < plans.size() && plans[c].decoder;
            columns_[c].waits =
                array && plans[c].any_shape() && plan_.options().ragged != Ragged::error;
            columns_[c].even = array && !columns_[c].waits;
            waits_ = waits_ || columns_[c].waits;
            const int64_t zero = 0;
            if (!array) append(columns_[c].offsets, &zero, sizeof zero, 64);
        }
    }
    if (!fields.complete || !fields.unexpected.empty()) {
        if (plan_.options().missing == Missing::skip) return false;
        if (plan_.options().missing == Missing::error) {
            std::string cause = "it has a field that the first sample has not";
            std::string_view field = fields.unexpected;
            const auto lacking = std::find(fields.number.begin(), fields.number.end(), -1);
            if (lacking != fields.number.end()) {
                field = plans[static_cast<size_t>(lacking - fields.number.begin())].spec.name();
                cause = "the sample has no field of this name";
            }
            throw placed(Error(SHF_E_FORMAT, cause,
                               "name the columns in decode, or set missing=skip or missing=empty"),
                         block, sample, field);
        }
    }
    forget_failed_row();
    const uint64_t random = plan_.random_of(block, sample);
    measure(block, sample, fields, random);
    const size_t work = work_.size(), waiting = waiting_.size();
    try {
        for (size_t c = 0; c < plans.size(); ++c) {
            if (fields.number[c] < 0) {
                add_empty(c);
                continue;
            }
            Building& building = columns_[c];
            const FieldView field = block.field_of(sample, static_cast<uint64_t>(fields.number[c]));
            if (!plans[c].decoder) {
                append_bytes(building, {reinterpret_cast<const char*>(field.data), field.size},
                             plans[c].usual_bytes);
                continue;
            }
            DecodeWork todo{.block = &block,
                            .sample = sample,
                            .column = static_cast<uint32_t>(c),
                            .row = rows_,
                            .field = static_cast<uint64_t>(fields.number[c]),
                            .random = random,
                            .type = measured_[c]};
            if (building.waits) {
                waiting_.push_back(todo);
                continue;
            }
            const uint64_t bytes = todo.type.bytes();
            todo.out = building.values.memory->data + rows_ * bytes;
            if (plans[c].decoder->is_slow() || bytes > small_row)
                work_.push_back(todo);
            else
                decode(todo, scratch_);
        }
        append_bytes(columns_[plans.size()], block.key_of(sample), 0);
        append_bytes(columns_[plans.size() + 1], block.origins[block.origin[sample]]->url, 0);
    } catch (...) {
        work_.resize(work);
        waiting_.resize(waiting);
        throw;
    }
    ++rows_;
    return true;
}

void BatchBuilder::decode(const DecodeWork& work, DecodeScratch& scratch) const {
    const FieldView field = work.block->field_of(work.sample, work.field);
    const Decoder& decoder = *plan_.columns()[work.column].decoder;
    const auto size = static_cast<size_t>(work.type.bytes());
    try {
        if (!work.padded) {
            decoder.decode(bytes_of(field), work.random, work.type, {work.out, size}, scratch);
        } else {
            std::vector<uint8_t> row(size);
            decoder.decode(bytes_of(field), work.random, work.type, row, scratch);
            copy_padded(row.data(), work.type, work.out, *work.padded);
        }
    } catch (const Error& error) {
        throw placed(error, *work.block, work.sample, field.name);
    }
}

// Throws Error when no row of the batch, and of those before it, has a value.
void BatchBuilder::settle_type(size_t column) {
    ColumnPlan& plan = plan_.columns()[column];
    Building& building = columns_[column];
    if (!building.type && !plan.any_shape()) building.type = plan.decoder->measure({}, 0);
    if (!building.type) building.type = plan.usual_type;
    if (!building.type)
        throw Error(SHF_E_FORMAT, "no sample of a batch has the field " + escape(plan.spec.name()) +
                                      ", so it is not known what array that is");
    plan.usual_type = building.type;
    if (building.even && !building.values.memory)
        building.values.memory = allocate(std::max<uint64_t>(rows_ * building.type->bytes(), 1));
}

std::vector<DecodeWork> BatchBuilder::close() {
    forget_failed_row();
    std::vector<DecodeWork> work = take_work();
    const std::span<ColumnPlan> plans = plan_.columns();
    for (size_t c = 0; c < plans.size() && rows_ > 0; ++c) {
        if (plans[c].decoder)
            settle_type(c);
        else
            plans[c].usual_bytes = columns_[c].values.used + columns_[c].values.used / 8;
        if (columns_[c].waits) place_waiting(c, work);
    }
    waiting_.clear();
    return work;
}

// Now that all rows of a column are known, each gets its place.
void BatchBuilder::place_waiting(size_t column, std::vector<DecodeWork>& work) {
    Building& building = columns_[column];
    ArrayType largest = *building.type;
    const bool pad = plan_.options().ragged == Ragged::pad;
    int64_t elements = 0;
    std::vector<DecodeWork*> rows;
    if (!pad) append(building.offsets, &elements, sizeof elements, (rows_ + 1) * sizeof elements);
    for (DecodeWork& row : waiting_) {
        if (row.column != column) continue;
        rows.push_back(&row);
        if (!row.block) {  // empty
            row.type = *building.type;
            row.type.shape.fill(0);
        }
        for (int32_t d = 0; d < row.type.ndim; ++d) {
            const auto i = static_cast<size_t>(d);
            append(building.shapes, &row.type.shape[i], sizeof(int64_t));
            largest.shape[i] = std::max(largest.shape[i], row.type.shape[i]);
        }
        // A number of its own has one element, and none in an empty row.
        const uint64_t count = row.block ? row.type.elements() : 0;
        if (__builtin_add_overflow(elements, count, &elements))
            throw Error(SHF_E_LIMIT, "a batch with too many elements", "lower batch");
        if (!pad) append(building.offsets, &elements, sizeof elements);
    }
    const size_t size = traits_of(largest.dtype).size;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(pad ? largest.bytes() : static_cast<uint64_t>(elements),
                               pad ? rows.size() : size, &bytes))
        bytes = UINT64_MAX;
    building.values.memory = allocate(std::max<uint64_t>(bytes, 1));
    building.values.used = bytes;
    building.even = pad;
    building.type = largest;
    if (pad) std::memset(building.values.memory->data, 0, bytes);
    for (size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i]->block) continue;
        const uint64_t at = pad ? i * largest.bytes()
                                : size * static_cast<uint64_t>(reinterpret_cast<const int64_t*>(
                                             building.offsets.memory->data)[i]);
        rows[i]->out = building.values.memory->data + at;
        if (pad && !(rows[i]->type == largest)) rows[i]->padded = &*building.type;
        work.push_back(*rows[i]);
    }
}

BatchColumn BatchBuilder::column_of(Building& building, const ColumnPlan& plan) const {
    BatchColumn column;
    column.name = plan.spec.name();
    column.kind = plan.spec.kind;
    if (plan.decoder) {
        column.row = *building.type;
        column.dtype = building.type->dtype;
    } else {
        column.row.ndim = 1;
    }
    column.ragged = !building.even;
    column.bytes = building.even ? rows_ * column.row.bytes() : building.values.used;
    for (const uint64_t row : building.empty_rows)
        if (row < rows_)
            std::memset(building.values.memory->data + row * column.row.bytes(), 0,
                        static_cast<size_t>(column.row.bytes()));
    column.values = std::move(building.values.memory);
    column.offset_memory = std::move(building.offsets.memory);
    if (column.row.ndim > 0) column.shape_memory = std::move(building.shapes.memory);
    return column;
}

BatchRef BatchBuilder::finish() {
    BatchRef batch(new Batch);
    batch->rows = rows_;
    const std::span<ColumnPlan> plans = plan_.columns();
    for (size_t c = 0; c < plans.size(); ++c)
        batch->columns.push_back(column_of(columns_[c], plans[c]));
    for (const std::string_view name : {key_column, url_column}) {
        ColumnPlan plan;
        plan.spec.fields.emplace_back(name);
        plan.spec.kind = ColumnSpec::Kind::text;
        batch->columns.push_back(column_of(columns_[batch->columns.size()], plan));
    }
    return batch;
}

}  // namespace shf
