#include "feed/row_writer.h"

#include "batch/measure_sample.h"
#include "batch/row_field.h"
#include "core/error.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

namespace shf {

namespace {

std::span<const uint8_t> view_bytes(const FieldView& field) {
    return {field.data, field.size};
}

}  // namespace

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
    out.begin_sample(block, sample);
    for (size_t c = 0; c < fields.number.size(); ++c)
        if (fields.number[c] >= 0) add_column(plan, fields, c, block, sample, out);
    out.end_sample();
}

void RowWriter::add_column(const BatchPlan& plan, const BatchPlan::Fields& fields, size_t column,
                           const Block& block, uint32_t sample, FeedBlockWriter& out) {
    const ColumnPlan& about = plan.columns()[column];
    const FieldView field = block.field_of(sample, static_cast<uint64_t>(fields.number[column]));
    const std::string name = row_field_of(about.spec);
    if (!about.decoder) {
        out.add_field(name, view_bytes(field));
        return;
    }
    bool added = false;
    std::optional<Fault> fault;
    try {
        const uint64_t random = plan.random_of(block, sample);
        const Decoder& decoder = *about.decoder;
        std::optional<std::span<const uint8_t>> image;
        if (const auto number = fields.image_of(about))
            image = view_bytes(block.field_of(sample, *number));
        const ArrayType type = (image ? decoder.measure_beside(*image, view_bytes(field), random)
                                      : decoder.measure(view_bytes(field), random))
                                   .type;
        const uint64_t header = row_header_size(type);
        const std::span<uint8_t> row =
            out.add_field(name, static_cast<size_t>(header + type.bytes()));
        added = true;
        write_row_header(type, row.data());
        const std::span<uint8_t> elements = row.subspan(static_cast<size_t>(header));
        if (image)
            decoder.decode_beside(*image, view_bytes(field), random, type, elements, scratch_);
        else
            decoder.decode(view_bytes(field), random, type, elements, scratch_);
    } catch (const Error& error) {
        fault = placed(error, block, sample, field.name).fault();
    }
    if (!fault) return;
    if (added) out.forget_field();
    out.add_field(name, fault_field(*fault));
}

}  // namespace shf
