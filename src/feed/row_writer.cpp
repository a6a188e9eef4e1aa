#include "feed/row_writer.h"

#include "batch/measure_sample.h"
#include "batch/row_field.h"
#include "core/error.h"
#include "core/fault_encoding.h"

#include <algorithm>
#include <utility>

namespace shf {

RowWriter::RowWriter(const Options& options) : options_(options), plan_(options) {
    for (const ColumnPlan& column : std::as_const(plan_).columns())
        if (column.spec.records)
            throw Error(SHF_E_USAGE, "the column " + escape(column.spec.name()) + " cannot be fed",
                        "leave it out of the decode of the feed");
}

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
            if (fields.number[column] >= 0) add_column(plan, fields, column, block, sample, out);
    } catch (const Error& error) {
        const auto number = static_cast<uint64_t>(fields.number[column]);
        const Error said = placed(error, block, sample, block.field_of(sample, number).name);
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
    const std::string name = row_field_of(about.spec);
    const std::span<const uint8_t> field = bytes_of_column(fields, column, block, sample);
    if (!about.decoder) return out.add_field(name, field);
    const uint64_t random = plan.random_of(block, sample);
    const Decoder& decoder = *about.decoder;
    const bool beside = fields.image_of(about).has_value();
    const std::span<const uint8_t> image =
        beside ? bytes_of_column(fields, about.spec.image_column, block, sample)
               : std::span<const uint8_t>();
    const ArrayType type =
        (beside ? decoder.measure_beside(image, field, random) : decoder.measure(field, random))
            .type;
    const uint64_t header = row_header_size(type);
    const std::span<uint8_t> row = out.add_field(name, static_cast<size_t>(header + type.bytes()));
    write_row_header(type, row.data());
    const std::span<uint8_t> elements = row.subspan(static_cast<size_t>(header));
    if (beside)
        decoder.decode_beside(image, field, random, type, elements, scratch_);
    else
        decoder.decode(field, random, type, elements, scratch_);
}

}  // namespace shf
