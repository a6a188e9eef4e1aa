#include "batch/batch_builder.h"

#include "batch/chosen.h"
#include "batch/row_field.h"
#include "batch/rows.h"
#include "core/error.h"
#include "io/source.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace shf {

namespace {

// A cheap row up to this size is decoded as it is added: even a list of such rows takes longer.
constexpr uint64_t small_row = 4096;

// In one call at every level of optimization: GCC 12 goes byte by byte through std::ranges::copy().
void copy_row(std::span<const uint8_t> row, std::span<uint8_t> out) {
    if (!row.empty()) std::memcpy(out.data(), row.data(), row.size());
}

std::span<const uint8_t> bytes_of(const FieldView& field) {
    return {field.data, field.size};
}

}  // namespace

BatchBuilder::BatchBuilder(BatchPlan& plan, uint64_t capacity, Allocate allocate, uint64_t bound)
    : plan_(plan),
      capacity_(capacity),
      bound_(bound),
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

void BatchBuilder::append_array(Building& building, DecodeWork todo, const Unpacked& bytes_of_row) {
    const uint64_t bytes = todo.type.bytes();
    reserve(building.values, bytes, 0);
    todo.out = building.values.memory->data + building.values.used;
    decode(todo, bytes_of_row, scratch_);
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

// How many elements the column has when this row is added, with the zeros of ragged=pad.
uint64_t BatchBuilder::elements_with(size_t column, const MeasuredSample& measured) const {
    const Building& building = columns_[column];
    const bool is_there = measured.fields->number[column] >= 0;
    const ArrayType& type = measured.columns[column].type;
    uint64_t elements = 0;
    if (plan_.options().ragged != Ragged::pad)
        return __builtin_add_overflow(building.elements, is_there ? type.elements() : 0, &elements)
                   ? UINT64_MAX
                   : elements;
    elements = rows_ + 1;
    const ArrayType& any = is_there ? type : building.largest;
    for (size_t d = 0; d < static_cast<size_t>(any.ndim); ++d) {
        const int64_t size = std::max(building.largest.shape[d], is_there ? type.shape[d] : 0);
        if (__builtin_mul_overflow(elements, size, &elements)) return UINT64_MAX;
    }
    return elements;
}

bool BatchBuilder::has_room(const MeasuredSample& measured) const {
    const uint64_t most = plan_.options().batch_elements;
    if (most == 0 || rows_ == 0) return true;
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    for (size_t c = 0; c < plans.size(); ++c)
        if (plans[c].has_length() && elements_with(c, measured) > most) return false;
    return true;
}

void BatchBuilder::count_elements(const MeasuredSample& measured) {
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    for (size_t c = 0; c < plans.size(); ++c) {
        if (!plans[c].has_length() || measured.fields->number[c] < 0) continue;
        const ArrayType& type = measured.columns[c].type;
        ArrayType& largest = columns_[c].largest;
        largest.ndim = type.ndim;
        for (size_t d = 0; d < static_cast<size_t>(type.ndim); ++d)
            largest.shape[d] = std::max(largest.shape[d], type.shape[d]);
        columns_[c].elements += type.elements();
    }
}

void BatchBuilder::allocate_rows(size_t column, const ArrayType& type) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(type.bytes(), capacity_, &bytes)) bytes = UINT64_MAX;
    columns_[column].values.memory = allocate(bytes);
}

// The first row of a column that is padded to the bound.
void BatchBuilder::begin_bounded(size_t column, const ArrayType& type) {
    Building& building = columns_[column];
    building.padded = type;
    building.padded.shape[0] = static_cast<int64_t>(bound_);
    allocate_rows(column, building.padded);
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
        if (building.bounded)
            building.shapes.used =
                rows_ * static_cast<uint64_t>(building.padded.ndim) * sizeof(int64_t);
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
    std::vector<Building> columns(plans.size() + 2 + (marks_padding_ ? 1 : 0));
    bool waits = false;
    try {
        for (size_t c = 0; c < columns.size(); ++c) {
            const bool array = c < plans.size() && plans[c].decoder;
            columns[c].bounded = array && bound_ > 0 && plans[c].has_length();
            columns[c].at_once = array && plans[c].spec.kind == ColumnSpec::Kind::boxes &&
                                 (plan_.options().ragged != Ragged::pad || bound_ > 0);
            columns[c].waits = array && !columns[c].at_once && plans[c].any_shape() &&
                               bound_ == 0 && plan_.options().ragged != Ragged::error;
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
    if (!measure_sample(plan_, block, sample, measured_)) return false;
    add(block, sample, measured_);
    return true;
}

void BatchBuilder::add(const Block& block, uint32_t sample, const MeasuredSample& measured) {
    if (columns_.empty()) set_up_columns();
    forget_failed_row();
    const std::span<ColumnPlan> plans = plan_.columns();
    const size_t work = work_.size(), waiting = waiting_.size();
    try {
        write_row(block, sample, measured);
    } catch (...) {
        work_.resize(work);
        waiting_.resize(waiting);
        throw;
    }
    for (size_t c = 0; c < plans.size(); ++c)
        if (plans[c].decoder && measured.fields->number[c] >= 0 && !plans[c].type)
            plans[c].type = measured.columns[c].type;
    if (packs()) elements_ += packed_elements(block, sample, measured);
    if (plan_.options().batch_elements > 0) count_elements(measured);
    ++rows_;
}

// With the option pack: how many a sample brings, about, where they are tokens that are still to be
// made. That only decides how many texts a call of the tokenizer gets.
uint64_t BatchBuilder::packed_elements(const Block& block, uint32_t sample,
                                       const MeasuredSample& measured) const {
    constexpr uint64_t bytes_of_token = 4;
    if (!std::as_const(plan_).columns()[0].is_text()) return measured.columns[0].type.elements();
    return measured.bytes_of(block, sample, 0).size() / bytes_of_token;
}

// With a bound all rows are of one size: so many are within batch_elements.
void BatchBuilder::lower_capacity(const MeasuredSample& measured) {
    const uint64_t most = plan_.options().batch_elements;
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    for (size_t c = 0; most > 0 && c < plans.size(); ++c) {
        if (!columns_[c].bounded) continue;
        ArrayType padded = measured.columns[c].type;
        padded.shape[0] = static_cast<int64_t>(bound_);
        // measure_sample() found that there is room for one.
        if (const uint64_t elements = padded.elements(); elements > 0)
            capacity_ = std::min(capacity_, std::max<uint64_t>(most / elements, 1));
    }
}

void BatchBuilder::write_row(const Block& block, uint32_t sample, const MeasuredSample& measured) {
    const BatchPlan::Fields& fields = *measured.fields;
    const uint64_t random = measured.random;
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    if (bound_ > 0 && rows_ == 0) lower_capacity(measured);
    for (size_t c = 0; c < plans.size(); ++c) {
        if (fields.number[c] == BatchPlan::Fields::recorded) {
            const auto field = [&](size_t column) {
                return measured.bytes_of(block, sample, column);
            };
            append_bytes(columns_[c], chosen_for(plan_, fields, block, sample, random, field),
                         plans[c].usual_bytes);
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
        Unpacked unpacked{measured.bytes_of(block, sample, c)};
        if (fields.image_of(plans[c]))
            unpacked.image = measured.bytes_of(block, sample, plans[c].spec.image_column);
        if (!plans[c].decoder) {
            append_bytes(
                building,
                {reinterpret_cast<const char*>(unpacked.field.data()), unpacked.field.size()},
                plans[c].usual_bytes);
            continue;
        }
        DecodeWork todo{.block = &block,
                        .sample = sample,
                        .column = static_cast<uint32_t>(c),
                        .row = rows_,
                        .field = static_cast<uint64_t>(fields.number[c]),
                        .image = fields.image_of(plans[c]),
                        .codec = fields.codec[c],
                        .image_codec = fields.image_codec_of(plans[c]),
                        .random = random,
                        .type = measured.columns[c].type,
                        .cheap = measured.columns[c].cheap};
        if (building.at_once) {
            append_array(building, todo, unpacked);
            continue;
        }
        if (building.waits) {
            waiting_.push_back(todo);
            continue;
        }
        const uint64_t bytes = todo.type.bytes();
        if (building.bounded) {
            if (!building.values.memory) begin_bounded(c, todo.type);
            append(building.shapes, todo.type.shape.data(), todo.type.dimensions().size_bytes(),
                   capacity_ * todo.type.dimensions().size_bytes());
            const uint64_t size = building.padded.bytes();
            todo.out = building.values.memory->data + rows_ * size;
            std::memset(todo.out + bytes, 0, static_cast<size_t>(size - bytes));
        } else {
            if (!building.values.memory) allocate_rows(c, todo.type);
            todo.out = building.values.memory->data + rows_ * bytes;
        }
        // What was unpacked to measure it is here and now.
        if (todo.cheap && (bytes <= small_row || todo.codec != FieldCodec::none))
            decode(todo, unpacked, scratch_);
        else
            work_.push_back(todo);
    }
    append_bytes(columns_[plans.size()], block.key_of(sample), 0);
    const Origin& origin = *block.origins[block.origin[sample]];
    append_bytes(columns_[plans.size() + 1], origin.url, 0);
    if (marks_padding_)
        append_bytes(columns_[plans.size() + 2], {origin.padding ? "\0" : "\1", 1}, 0);
}

void BatchBuilder::decode(const DecodeWork& work, DecodeScratch& scratch) const {
    const Block& block = *work.block;
    const FieldView field = block.field_of(work.sample, work.field);
    Unpacked bytes{bytes_of(field)};
    if (work.image) bytes.image = bytes_of(block.field_of(work.sample, *work.image));
    if (work.codec == FieldCodec::none && work.image_codec == FieldCodec::none)
        return decode(work, bytes, scratch);
    if (!scratch.unpack) scratch.unpack = std::make_unique<UnpackScratch>();
    struct Trim {
        UnpackScratch& scratch;
        ~Trim() {
            scratch.field.drop_large_piece();
            scratch.image.drop_large_piece();
        }
    };
    const Trim trim{*scratch.unpack};
    const auto unpack = [&](FieldCodec codec, std::span<const uint8_t> packed, UnpackedField& out) {
        return codec == FieldCodec::none ? packed
                                         : scratch.unpack->unpacker.unpack(
                                               codec, packed, UnpackLimits(plan_.options()), out);
    };
    try {
        bytes.field = unpack(work.codec, bytes.field, scratch.unpack->field);
        bytes.image = unpack(work.image_codec, bytes.image, scratch.unpack->image);
    } catch (const Error& error) {
        throw placed(error, block, work.sample, field.name);
    }
    decode(work, bytes, scratch);
}

void BatchBuilder::decode(const DecodeWork& work, const Unpacked& bytes,
                          DecodeScratch& scratch) const {
    const Decoder& decoder = *plan_.columns()[work.column].decoder;
    const auto size = static_cast<size_t>(work.type.bytes());
    const FieldView field = work.block->field_of(work.sample, work.field);
    try {
        const Deferred rest = work.block->deferred_of(work.sample, work.field);
        const bool is_row = work.block->schemas[work.block->schema[work.sample]]->of_rows;
        const auto write = [&](std::span<uint8_t> out) {
            if (is_row)
                copy_row(row_elements(bytes.field), out);
            else if (work.image)
                decoder.decode_beside(bytes.image, bytes.field, work.random, work.type, out,
                                      scratch);
            else if (rest.size == 0)
                decoder.decode(bytes.field, work.random, work.type, out, scratch);
            else if (const auto copied =
                         decoder.copied(bytes.field, bytes.field.size() + rest.size))
                copy_whole_field(bytes.field.subspan(copied->begin), *work.block->source, rest,
                                 out);
            else
                decoder.decode(whole_field(*work.block, field, rest), work.random, work.type, out,
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

std::vector<shf_text> BatchBuilder::texts(size_t column) const {
    const auto field = [this](size_t number, uint64_t row) -> shf_bytes {
        const Building& building = columns_[number];
        const auto* const offsets =
            reinterpret_cast<const int64_t*>(building.offsets.memory->data) + row;
        return {building.values.memory->data + offsets[0],
                static_cast<size_t>(offsets[1] - offsets[0])};
    };
    const size_t keys = plan_.columns().size();
    std::vector<shf_text> texts;
    texts.reserve(static_cast<size_t>(rows_));
    for (uint64_t row = 0; row < rows_; ++row)
        texts.push_back({field(column, row), field(keys, row), field(keys + 1, row)});
    return texts;
}

void BatchBuilder::put_tokens(size_t column, Tokens tokens) {
    Building& building = columns_[column];
    bytes_ -= building.values.memory->capacity;
    bytes_ += tokens.values->capacity;
    building.values.memory = std::move(tokens.values);
    building.values.used = tokens.bytes();
    // Where texts ended, their tokens end: the first of these numbers is 0.
    std::memcpy(building.offsets.memory->data + sizeof(int64_t), tokens.ends.data(),
                tokens.ends.size() * sizeof(int64_t));
    building.tokens = true;
}

uint64_t BatchBuilder::elements_of_row(size_t column, uint64_t row) const {
    const auto* const offsets =
        reinterpret_cast<const int64_t*>(columns_[column].offsets.memory->data) + row;
    return static_cast<uint64_t>(offsets[1] - offsets[0]);
}

BatchColumn BatchBuilder::column_of(Building& building, const ColumnPlan& plan, uint64_t rows) {
    BatchColumn column;
    column.name = plan.spec.name();
    column.kind = plan.spec.kind;
    if (plan.decoder) {
        column.bounded = building.bounded;
        column.row =
            building.bounded || (building.even && building.waits) ? building.padded : *plan.type;
        column.dtype = column.row.dtype;
    } else {
        column.row.ndim = 1;
    }
    if (building.tokens) {
        column.kind = ColumnSpec::Kind::list;
        column.dtype = column.row.dtype = DType::i32;
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
