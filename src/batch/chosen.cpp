#include "batch/chosen.h"

#include "batch/measure_sample.h"
#include "core/error.h"

#include <nlohmann/json.hpp>

namespace shf {

namespace {

constexpr auto replace_invalid = nlohmann::json::error_handler_t::replace;

bool has_choices(const ColumnSpec& spec) {
    using Kind = ColumnSpec::Kind;
    return spec.kind == Kind::image || spec.kind == Kind::audio || spec.kind == Kind::video;
}

}  // namespace

std::string chosen_for(const BatchPlan& plan, const BatchPlan::Fields& fields, const Block& block,
                       uint32_t sample, uint64_t random,
                       const std::function<std::span<const uint8_t>(size_t column)>& bytes_of) {
    const std::span<const ColumnPlan> columns = plan.columns();
    std::string text = "{";
    for (size_t c = 0; c < columns.size(); ++c) {
        const ColumnSpec& spec = columns[c].spec;
        if (!has_choices(spec)) continue;
        text += text.size() > 1 ? "," : "";
        text += nlohmann::json(spec.name()).dump(-1, ' ', true, replace_invalid) + ':';
        const int32_t number = fields.number[c];
        if (number < 0) {
            text += "null";
            continue;
        }
        try {
            text += columns[c].decoder->record(bytes_of(c), random);
        } catch (const Error& error) {
            throw placed(error, block, sample,
                         block.field_of(sample, static_cast<uint64_t>(number)).name);
        }
    }
    return text + '}';
}

}  // namespace shf
