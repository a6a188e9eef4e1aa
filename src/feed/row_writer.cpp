#include "feed/row_writer.h"

#include "batch/chosen.h"
#include "batch/measure_sample.h"
#include "batch/row_field.h"
#include "core/error.h"
#include "core/fault_encoding.h"

#include <algorithm>
#include <utility>

namespace shf {

RowWriter::RowWriter(const Options& options) : options_(options), plan_(options) {}

BatchPlan& RowWriter::plan_of(const Schema& schema) {
    if (!plan_.automatic()) return plan_;
    constexpr size_t most = 1024;  // lists of names
    if (plans_.size() > most) plans_.clear();
    auto& plan = plans_[schema.names];
    if (!plan) plan = std::make_unique<BatchPlan>(options_);
    return *plan;
}

void RowWriter::add(const Block& block, uint32_t sample, FeedBlockWriter& out) {
    const std::shared_ptr<const Schema>& schema = block.schemas[block.schema[sample]];
    BatchPlan& plan = plan_of(*schema);
    const BatchPlan::Fields& fields = plan.fields_of(schema);
    unpacked_.resize(fields.number.size());
    out.begin_sample(block, sample);
    if (!fields.complete && options_.missing != Missing::empty) {
        // The consumer skips or refuses it by its names.
        for (size_t i = 0; i < schema->ends.size(); ++i) out.add_field(schema->name(i), 0);
        return out.end_sample();
    }
    size_t column = 0;
    try {
        for (; column < fields.number.size(); ++column)
            if (fields.number[column] >= 0)
                add_column(plan, fields, column, block, sample, out);
            else if (fields.number[column] == BatchPlan::Fields::recorded)
                add_chosen(plan, fields, column, block, sample, out);
    } catch (const Error& error) {
        const int32_t number = fields.number[column];
        // What was chosen for other columns says itself where it is.
        const Error said = number < 0
                               ? error
                               : placed(error, block, sample,
                                        block.field_of(sample, static_cast<uint64_t>(number)).name);
        out.forget_fields();
        out.add_field(fault_field, encode_fault(said.fault()));
    }
    out.end_sample();
}

// Unpacked.
std::span<const uint8_t> RowWriter::bytes_of_column(const BatchPlan::Fields& fields, size_t column,
                                                    const Block& block, uint32_t sample) {
    const FieldView field = block.field_of(sample, static_cast<uint64_t>(fields.number[column]));
    const std::span<const uint8_t> bytes(field.data, field.size);
    if (fields.codec[column] == FieldCodec::none) return bytes;
    unpacked_[column].drop_large_piece();
    return unpacker_.unpack(fields.codec[column], bytes, UnpackLimits(options_), unpacked_[column]);
}

void RowWriter::add_column(const BatchPlan& plan, const BatchPlan::Fields& fields, size_t column,
                           const Block& block, uint32_t sample, FeedBlockWriter& out) {
    const ColumnPlan& about = plan.columns()[column];
    std::span<const uint8_t> field = bytes_of_column(fields, column, block, sample);
    if (!about.decoder) return out.add_field(row_field_of(about.spec), field);
    const uint64_t random = plan.random_of(block, sample);
    const Decoder& decoder = *about.decoder;
    const auto number = static_cast<uint64_t>(fields.number[column]);
    std::vector<uint8_t> whole;
    if (const Deferred rest = block.deferred_of(sample, number); rest.size > 0) {
        if (const auto copied = decoder.copied(field, field.size() + rest.size))
            return copy_whole_field(field.subspan(copied->begin), *block.source, rest,
                                    add_row(about, copied->type, out));
        whole = whole_field(block, block.field_of(sample, number), rest);
        field = whole;
    }
    if (!fields.image_of(about)) {
        const ArrayType type = decoder.measure(field, random).type;
        return decoder.decode(field, random, type, add_row(about, type, out), scratch_);
    }
    const std::span<const uint8_t> image =
        bytes_of_column(fields, about.spec.image_column, block, sample);
    const ArrayType type = decoder.measure_beside(image, field, random).type;
    decoder.decode_beside(image, field, random, type, add_row(about, type, out), scratch_);
}

// Where its elements go.
std::span<uint8_t> RowWriter::add_row(const ColumnPlan& column, const ArrayType& type,
                                      FeedBlockWriter& out) {
    const uint64_t header = row_header_size(type);
    const std::span<uint8_t> row =
        out.add_field(row_field_of(column.spec), static_cast<size_t>(header + type.bytes()));
    write_row_header(type, row.data());
    return row.subspan(static_cast<size_t>(header));
}

// The text of the column "__augment__", which the bytes of the other fields are needed for.
void RowWriter::add_chosen(const BatchPlan& plan, const BatchPlan::Fields& fields, size_t column,
                           const Block& block, uint32_t sample, FeedBlockWriter& out) {
    const auto field = [&](size_t other) { return bytes_of_column(fields, other, block, sample); };
    const std::string text =
        chosen_for(plan, fields, block, sample, plan.random_of(block, sample), field);
    out.add_field(row_field_of(plan.columns()[column].spec),
                  {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace shf
