#include "batch/batch_builder.h"

#include "batch/rows.h"
#include "core/error.h"
#include "io/source.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace shf {

namespace {

// A cheap row up to this size is decoded as it is added: even a list of such rows takes longer.
constexpr uint64_t small_row = 4096;

constexpr auto replace_invalid = nlohmann::json::error_handler_t::replace;

std::span<const uint8_t> bytes_of(const FieldView& field) {
    return {field.data, field.size};
}

// What is here, and behind it what is still in the shard: straight to where it is wanted.
void copy_whole(std::span<const uint8_t> start, Source& source, const Deferred& rest,
                std::span<uint8_t> out) {
    std::copy(start.begin(), start.end(), out.begin());
    if (source.read(rest.offset, out.subspan(start.size())) < rest.size)
        throw Error(SHF_E_TRUNCATED, "the shard ends inside this field",
                    "let no program write to shards that are in use");
}

// For decoders that need the field in one piece.
std::vector<uint8_t> whole(const Block& block, const FieldView& field, const Deferred& rest) {
    std::vector<uint8_t> bytes(field.size + static_cast<size_t>(rest.size));
    copy_whole(bytes_of(field), *block.source, rest, bytes);
    return bytes;
}

// Says where a fault is.
Error placed(const Error& error, const Block& block, uint32_t sample, std::string_view field) {
    Fault fault = error.fault();
    fault.shard = block.origins[block.origin[sample]]->url;
    fault.key = block.key_of(sample);
    fault.member = escape(fault.key + "." + std::string(field));
    fault.offset = block.offset[sample];
    return Error(std::move(fault));
}

// The number of the field with the image in which boxes lie.
std::optional<uint64_t> image_of(const ColumnPlan& plan, const BatchPlan::Fields& fields) {
    if (plan.spec.kind != ColumnSpec::Kind::boxes) return std::nullopt;
    return static_cast<uint64_t>(fields.number[plan.spec.image_column]);
}

// The names of fields for a message: those of a sample are few.
std::string field_names(const Schema& schema) {
    constexpr size_t most = 12;
    std::string names;
    for (size_t i = 0; i < std::min(schema.ends.size(), most); ++i)
        names += (i == 0 ? "" : ", ") + escape(schema.name(i));
    if (schema.ends.size() > most)
        names += " and " + std::to_string(schema.ends.size() - most) + " more";
    return names.empty() ? "none at all" : names;
}

}  // namespace

BatchBuilder::BatchBuilder(BatchPlan& plan, uint64_t capacity, Allocate allocate)
    : plan_(plan),
      capacity_(capacity),
      allocate_(std::move(allocate)),
      marks_padding_(plan.options().even == Even::pad) {}

StorageRef BatchBuilder::allocate(uint64_t bytes) {
    const uint64_t memory = plan_.options().memory;
    if (bytes > memory || bytes_ > memory - bytes)
        throw BatchTooLarge(SHF_E_LIMIT,
                            "a batch of " + plural(packs() ? rows_ : capacity_, "row") +
                                " takes more than " + "memory=" + std::to_string(memory),
                            "raise memory, or lower batch");
    StorageRef storage = allocate_(std::max<uint64_t>(bytes, 1));
    bytes_ += storage->capacity;
    return storage;
}

void BatchBuilder::drop(Growing& growing) {
    if (growing.memory) bytes_ -= growing.memory->capacity;
    growing = {};
}

void BatchBuilder::reserve(Growing& growing, uint64_t more, uint64_t guess) {
    const uint64_t capacity = growing.memory ? growing.memory->capacity : 0;
    if (growing.memory && more <= capacity - growing.used) return;
    // What is there now goes.
    const uint64_t memory = plan_.options().memory;
    const uint64_t others = bytes_ - capacity;
    const uint64_t room = memory > others ? memory - others : 0;
    const uint64_t needed = growing.used + more;
    const uint64_t wanted = std::max({needed, 2 * capacity, guess, uint64_t{64}});
    bytes_ = others;
    StorageRef larger;
    try {
        larger = allocate(std::max(needed, std::min(wanted, room)));
    } catch (...) {
        bytes_ += capacity;
        throw;
    }
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

void BatchBuilder::append_array(Building& building, DecodeWork todo) {
    const uint64_t bytes = todo.type.bytes();
    reserve(building.values, bytes, 0);
    todo.out = building.values.memory->data + building.values.used;
    decode(todo, scratch_);
    building.values.used += bytes;
    end_array(building, todo.type);
}

// Behind its numbers: where they end, and its shape.
void BatchBuilder::end_array(Building& building, const ArrayType& type) {
    const auto end = static_cast<int64_t>(building.values.used / traits_of(type.dtype).size);
    append(building.offsets, &end, sizeof end, (rows_ + 2) * sizeof end);
    const std::span<const int64_t> shape = type.dimensions();
    append(building.shapes, shape.data(), shape.size_bytes());
}

Measured BatchBuilder::measured(const Decoder& decoder, const Block& block, const FieldView& field,
                                const Deferred& rest, uint64_t random) {
    if (rest.size == 0) return decoder.measure(bytes_of(field), random);
    // To read it is work for any thread.
    if (const auto copied = decoder.copied(bytes_of(field), field.size + rest.size))
        return {.type = copied->type, .cheap = false};
    return decoder.measure(whole(block, field, rest), random);
}

void BatchBuilder::check_type(size_t column) const {
    const ColumnPlan& plan = std::as_const(plan_).columns()[column];
    const ArrayType& type = measured_[column].type;
    const bool even = columns_[column].even || plan.spec.mixing.any();
    if (!plan.type || (even ? type == *plan.type
                            : type.dtype == plan.type->dtype && type.ndim == plan.type->ndim))
        return;
    throw Error(SHF_E_FORMAT,
                "an array " + type.text() + " in a column that begins with " + plan.type->text(),
                plan.spec.mixing.any()
                    ? "images that are mixed have one size: give them a crop or a "
                      "resize=WxH"
                : even ? "ragged=pad and ragged=offsets take rows of unequal shape"
                       : "rows of one column have one dtype and number of dimensions");
}

void BatchBuilder::measure(const Block& block, uint32_t sample, const BatchPlan::Fields& fields,
                           uint64_t random) {
    for (size_t c = 0; c < fields.number.size(); ++c) {
        if (fields.number[c] < 0) continue;
        const auto number = static_cast<uint64_t>(fields.number[c]);
        const FieldView field = block.field_of(sample, number);
        try {
            const ColumnPlan& plan = plan_.columns()[c];
            if (plan.decoder) {
                if (const auto image = image_of(plan, fields))
                    measured_[c] = plan.decoder->measure_beside(
                        bytes_of(block.field_of(sample, *image)), bytes_of(field), random);
                else
                    measured_[c] = measured(*plan.decoder, block, field,
                                            block.deferred_of(sample, number), random);
                check_type(c);
            } else if (field.size > plan_.options().max_decoded) {
                throw Error(SHF_E_LIMIT,
                            "a field of " + plural(field.size, "byte") +
                                " is larger than max_decoded=" +
                                std::to_string(plan_.options().max_decoded),
                            "raise max_decoded");
            } else if (plan.spec.kind == ColumnSpec::Kind::text &&
                       !is_utf8({reinterpret_cast<const char*>(field.data), field.size})) {
                throw Error(SHF_E_FORMAT, "text that is not UTF-8", "take the field as bytes");
            }
        } catch (const Error& error) {
            throw placed(error, block, sample, field.name);
        }
    }
}

// Rows of tokens and of what belongs to each of them are cut at the same places.
void BatchBuilder::check_lengths(const Block& block, uint32_t sample,
                                 const BatchPlan::Fields& fields) const {
    for (size_t c = 0; c < measured_.size(); ++c) {
        const ArrayType& type = measured_[c].type;
        std::string cause;
        if (type.ndim != 1)
            cause = "an array " + type.text() + ", where pack joins arrays of one dimension";
        else if (type.shape[0] != measured_[0].type.shape[0])
            cause = "an array " + type.text() + " beside one of " +
                    plural(measured_[0].type.elements(), "element") +
                    ", where pack cuts all arrays of a sample at the same places";
        if (cause.empty()) continue;
        const FieldView field = block.field_of(sample, static_cast<uint64_t>(fields.number[c]));
        throw placed(Error(SHF_E_FORMAT, cause, "name the fields to pack in decode"), block, sample,
                     field.name);
    }
}

void BatchBuilder::allocate_rows(size_t column, const ArrayType& type) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(type.bytes(), capacity_, &bytes)) bytes = UINT64_MAX;
    columns_[column].values.memory = allocate(bytes);
}

void BatchBuilder::add_empty(size_t column) {
    Building& building = columns_[column];
    if (!plan_.columns()[column].decoder) {
        append_bytes(building, {}, 0);
    } else if (building.at_once) {
        ArrayType nothing = *plan_.columns()[column].type;
        nothing.shape.fill(0);
        end_array(building, nothing);
    } else if (building.waits) {
        // A row without elements; its shape is zeros.
        waiting_.push_back({.column = static_cast<uint32_t>(column), .row = rows_, .type = {}});
    } else {
        building.empty_rows.push_back(rows_);
    }
}

// What a row that failed left behind goes.
void BatchBuilder::forget_failed_row() {
    for (size_t c = 0; c < columns_.size(); ++c) {
        Building& building = columns_[c];
        while (!building.empty_rows.empty() && building.empty_rows.back() >= rows_)
            building.empty_rows.pop_back();
        if (c == plan_.columns().size() + 2) {
            building.values.used = rows_;
            continue;
        }
        // The memory was for an array that it alone had.
        if (building.even && !plan_.columns()[c].type) drop(building.values);
        if (building.even || building.waits) continue;
        building.offsets.used = (rows_ + 1) * sizeof(int64_t);
        building.values.used = static_cast<uint64_t>(
            reinterpret_cast<const int64_t*>(building.offsets.memory->data)[rows_]);
        if (!building.at_once) continue;
        const ArrayType& type = *plan_.columns()[c].type;
        building.values.used *= traits_of(type.dtype).size;
        building.shapes.used = rows_ * type.dimensions().size_bytes();
    }
}

// All of them or none: with ragged columns that begin with the offset 0.
void BatchBuilder::set_up_columns() {
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    measured_.resize(plans.size());
    std::vector<Building> columns(plans.size() + 2 + (marks_padding_ ? 1 : 0));
    bool waits = false;
    try {
        for (size_t c = 0; c < columns.size(); ++c) {
            const bool array = c < plans.size() && plans[c].decoder;
            columns[c].at_once = array && plans[c].spec.kind == ColumnSpec::Kind::boxes &&
                                 plan_.options().ragged != Ragged::pad;
            columns[c].waits = array && !columns[c].at_once && plans[c].any_shape() &&
                               plan_.options().ragged != Ragged::error;
            const bool marks = c == plans.size() + 2;
            columns[c].even = (array && !columns[c].waits && !columns[c].at_once) || marks;
            waits = waits || columns[c].waits;
            const int64_t zero = 0;
            if ((!array && !marks) || columns[c].at_once)
                append(columns[c].offsets, &zero, sizeof zero, 64);
        }
    } catch (...) {
        bytes_ = 0;  // nothing else had been taken
        throw;
    }
    columns_ = std::move(columns);
    waits_ = waits;
}

bool BatchBuilder::add(const Block& block, uint32_t sample) {
    const BatchPlan::Fields& fields = plan_.fields_of(block.schemas[block.schema[sample]]);
    const std::span<ColumnPlan> plans = plan_.columns();
    if (columns_.empty()) set_up_columns();
    if (!fields.complete || !fields.unexpected.empty()) {
        if (plan_.options().missing == Missing::skip) return false;
        if (plan_.options().missing == Missing::error) {
            std::string cause = "it has a field that the first sample has not";
            std::string_view field = fields.unexpected;
            const auto lacking = std::find(fields.number.begin(), fields.number.end(), -1);
            if (lacking != fields.number.end()) {
                field = plans[static_cast<size_t>(lacking - fields.number.begin())].spec.name();
                cause = "the sample has no field of this name, but " +
                        field_names(*block.schemas[block.schema[sample]]);
            }
            throw placed(Error(SHF_E_FORMAT, cause,
                               "name the columns in decode, or set missing=skip or missing=empty"),
                         block, sample, field);
        }
    }
    forget_failed_row();
    const uint64_t random = plan_.random_of(block, sample);
    measure(block, sample, fields, random);
    if (packs()) check_lengths(block, sample, fields);
    const size_t work = work_.size(), waiting = waiting_.size();
    try {
        write_row(block, sample, fields, random);
    } catch (...) {
        work_.resize(work);
        waiting_.resize(waiting);
        throw;
    }
    for (size_t c = 0; c < plans.size(); ++c)
        if (plans[c].decoder && fields.number[c] >= 0 && !plans[c].type)
            plans[c].type = measured_[c].type;
    if (packs()) elements_ += measured_[0].type.elements();
    ++rows_;
    return true;
}

void BatchBuilder::write_row(const Block& block, uint32_t sample, const BatchPlan::Fields& fields,
                             uint64_t random) {
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    for (size_t c = 0; c < plans.size(); ++c) {
        if (fields.number[c] == BatchPlan::Fields::recorded) {
            append_bytes(columns_[c], record(block, sample, fields, random), plans[c].usual_bytes);
            continue;
        }
        if (fields.number[c] == BatchPlan::Fields::paired) {
            if (!columns_[c].values.memory) allocate_rows(c, *plans[c].type);
            std::memcpy(columns_[c].values.memory->data + rows_ * sizeof random, &random,
                        sizeof random);
            continue;
        }
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
                        .image = image_of(plans[c], fields),
                        .random = random,
                        .type = measured_[c].type,
                        .cheap = measured_[c].cheap};
        if (building.at_once) {
            append_array(building, todo);
            continue;
        }
        if (building.waits) {
            waiting_.push_back(todo);
            continue;
        }
        if (!building.values.memory) allocate_rows(c, todo.type);
        const uint64_t bytes = todo.type.bytes();
        todo.out = building.values.memory->data + rows_ * bytes;
        if (todo.cheap && bytes <= small_row)
            decode(todo, scratch_);
        else
            work_.push_back(todo);
    }
    append_bytes(columns_[plans.size()], block.key_of(sample), 0);
    const Origin& origin = *block.origins[block.origin[sample]];
    append_bytes(columns_[plans.size() + 1], origin.url, 0);
    if (marks_padding_)
        append_bytes(columns_[plans.size() + 2], {origin.padding ? "\0" : "\1", 1}, 0);
}

// What was chosen for each column of images and sounds: a JSON object by name, null where the
// sample lacks the field.
std::string BatchBuilder::record(const Block& block, uint32_t sample,
                                 const BatchPlan::Fields& fields, uint64_t random) const {
    using Kind = ColumnSpec::Kind;
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    std::string text = "{";
    for (size_t c = 0; c < plans.size(); ++c) {
        const ColumnSpec& spec = plans[c].spec;
        if (spec.kind != Kind::image && spec.kind != Kind::audio) continue;
        text += text.size() > 1 ? "," : "";
        text += nlohmann::json(spec.name()).dump(-1, ' ', true, replace_invalid) + ':';
        if (fields.number[c] < 0) {
            text += "null";
            continue;
        }
        const FieldView field = block.field_of(sample, static_cast<uint64_t>(fields.number[c]));
        try {
            text += plans[c].decoder->record(bytes_of(field), random);
        } catch (const Error& error) {
            throw placed(error, block, sample, field.name);
        }
    }
    return text + '}';
}

void BatchBuilder::decode(const DecodeWork& work, DecodeScratch& scratch) const {
    const FieldView field = work.block->field_of(work.sample, work.field);
    const Decoder& decoder = *plan_.columns()[work.column].decoder;
    const auto size = static_cast<size_t>(work.type.bytes());
    try {
        const Deferred rest = work.block->deferred_of(work.sample, work.field);
        const auto write = [&](std::span<uint8_t> out) {
            if (work.image)
                decoder.decode_beside(bytes_of(work.block->field_of(work.sample, *work.image)),
                                      bytes_of(field), work.random, work.type, out, scratch);
            else if (rest.size == 0)
                decoder.decode(bytes_of(field), work.random, work.type, out, scratch);
            else if (const auto copied = decoder.copied(bytes_of(field), field.size + rest.size))
                copy_whole(bytes_of(field).subspan(copied->begin), *work.block->source, rest, out);
            else
                decoder.decode(whole(*work.block, field, rest), work.random, work.type, out,
                               scratch);
        };
        if (!work.padded) {
            write({work.out, size});
        } else {
            std::vector<uint8_t> row(size);
            write(row);
            copy_padded(row.data(), work.type, work.out, *work.padded);
        }
    } catch (const Error& error) {
        throw placed(error, *work.block, work.sample, field.name);
    }
}

std::vector<DecodeWork> BatchBuilder::close() {
    forget_failed_row();
    std::vector<DecodeWork> work = take_work();
    const std::span<ColumnPlan> plans = plan_.columns();
    for (size_t c = 0; c < plans.size() && rows_ > 0; ++c) {
        if (!plans[c].decoder) {
            plans[c].usual_bytes = columns_[c].values.used + columns_[c].values.used / 8;
            continue;
        }
        if (!plans[c].type)
            throw Error(SHF_E_FORMAT,
                        "no sample of a batch, nor before it, has the field " +
                            escape(plans[c].spec.name()) + ", so it is not known what array it is",
                        "leave the column out of decode, or set missing=skip");
        if (columns_[c].waits)
            place_waiting(c, work);
        else if (!columns_[c].values.memory)
            allocate_rows(c, *plans[c].type);
    }
    waiting_.clear();
    return work;
}

// Now that all rows of a column are known, each gets its place.
void BatchBuilder::place_waiting(size_t column, std::vector<DecodeWork>& work) {
    Building& building = columns_[column];
    ArrayType largest = *plan_.columns()[column].type;
    largest.shape.fill(0);
    const bool pad = plan_.options().ragged == Ragged::pad;
    int64_t elements = 0;
    std::vector<DecodeWork*> rows;
    if (!pad) append(building.offsets, &elements, sizeof elements, (rows_ + 1) * sizeof elements);
    for (DecodeWork& row : waiting_) {
        if (row.column != column) continue;
        rows.push_back(&row);
        if (!row.block) {  // empty
            row.type = *plan_.columns()[column].type;
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
    building.values.memory = allocate(bytes);
    building.values.used = bytes;
    building.even = pad;
    building.padded = largest;
    if (pad) std::memset(building.values.memory->data, 0, bytes);
    for (size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i]->block) continue;
        const uint64_t at = pad ? i * largest.bytes()
                                : size * static_cast<uint64_t>(reinterpret_cast<const int64_t*>(
                                             building.offsets.memory->data)[i]);
        rows[i]->out = building.values.memory->data + at;
        if (pad && !(rows[i]->type == largest)) rows[i]->padded = &building.padded;
        work.push_back(*rows[i]);
    }
}

BatchColumn BatchBuilder::column_of(Building& building, const ColumnPlan& plan, uint64_t rows) {
    BatchColumn column;
    column.name = plan.spec.name();
    column.kind = plan.spec.kind;
    if (plan.decoder) {
        column.row = building.even && building.waits ? building.padded : *plan.type;
        column.dtype = column.row.dtype;
    } else {
        column.row.ndim = 1;
    }
    column.ragged = !building.even;
    column.bytes = building.even ? rows * column.row.bytes() : building.values.used;
    for (const uint64_t row : building.empty_rows)
        if (row < rows)
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
        batch->columns.push_back(column_of(columns_[c], plans[c], rows_));
    if (marks_padding_) {
        BatchColumn valid;
        valid.name = valid_column;
        valid.kind = ColumnSpec::Kind::integer;
        valid.dtype = valid.row.dtype = DType::bool8;
        valid.bytes = rows_;
        valid.values = std::move(columns_[plans.size() + 2].values.memory);
        batch->columns.push_back(std::move(valid));
    }
    size_t number = plans.size();
    for (const std::string_view name : {key_column, url_column}) {
        ColumnPlan plan;
        plan.spec.fields.emplace_back(name);
        plan.spec.kind = ColumnSpec::Kind::text;
        batch->columns.push_back(column_of(columns_[number++], plan, rows_));
    }
    return batch;
}

}  // namespace shf
