#include "batch/measure_sample.h"

#include "batch/row_field.h"
#include "core/fault_encoding.h"
#include "core/options.h"
#include "io/source.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shf {

Error placed(const Error& error, const Block& block, uint32_t sample, std::string_view field) {
    Fault fault = error.fault();
    fault.shard = block.origins[block.origin[sample]]->url;
    fault.key = block.key_of(sample);
    fault.member = escape(fault.key + "." + std::string(field));
    fault.offset = block.offset[sample];
    return Error(std::move(fault));
}

void copy_whole_field(std::span<const uint8_t> start, Source& source, const Deferred& rest,
                      std::span<uint8_t> out) {
    std::copy(start.begin(), start.end(), out.begin());
    if (source.read(rest.offset, out.subspan(start.size())) < rest.size)
        throw Error(SHF_E_TRUNCATED, "the shard ends inside this field",
                    "let no program write to shards that are in use");
}

std::vector<uint8_t> whole_field(const Block& block, const FieldView& field, const Deferred& rest) {
    std::vector<uint8_t> bytes(field.size + static_cast<size_t>(rest.size));
    copy_whole_field({field.data, field.size}, *block.source, rest, bytes);
    return bytes;
}

namespace {

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

class SampleMeasure {
  public:
    SampleMeasure(BatchPlan& plan, const Block& block, uint32_t sample, MeasuredSample& out)
        : plan_(plan), options_(plan.options()), block_(block), sample_(sample), out_(out) {}

    bool measure() {
        out_.fields = &plan_.fields_of(block_.schemas[block_.schema[sample_]]);
        if (out_.fields->fault >= 0) {
            const FieldView fault = block_.field_of(sample_, 0);
            throw Error(decode_fault({fault.data, fault.size}));
        }
        if (!check_fields()) return false;
        out_.random = plan_.random_of(block_, sample_);
        length_ = 0;
        out_.columns.resize(plan_.columns().size());
        out_.unpacked.resize(out_.columns.size());
        for (size_t c = 0; c < out_.columns.size(); ++c)
            if (out_.fields->number[c] >= 0) about(c, [&] { measure_field(c); });
        const std::span<const uint64_t> bounds = plan_.bounds();
        out_.bucket = static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), length_) -
                                          bounds.begin());
        if (options_.pack > 0) check_packed();
        if (options_.batch_elements > 0) check_elements();
        return true;
    }

  private:
    [[nodiscard]] const ColumnPlan& column(size_t c) const {
        return std::as_const(plan_).columns()[c];
    }
    [[nodiscard]] FieldView field(size_t c) const {
        return block_.field_of(sample_, static_cast<uint64_t>(out_.fields->number[c]));
    }
    // Errors say which field they are of.
    template <typename Act>
    void about(size_t c, Act act) const {
        try {
            act();
        } catch (const Error& error) {
            throw placed(error, block_, sample_, field(c).name);
        }
    }

    // False: the sample is skipped.
    [[nodiscard]] bool check_fields() const {
        const BatchPlan::Fields& fields = *out_.fields;
        if (fields.complete && fields.unexpected.empty()) return true;
        if (options_.missing == Missing::skip) return false;
        if (options_.missing == Missing::empty) return true;
        std::string cause = "it has a field that the first sample has not";
        std::string_view name = fields.unexpected;
        const auto lacking = std::find(fields.number.begin(), fields.number.end(), -1);
        if (lacking != fields.number.end()) {
            name = column(static_cast<size_t>(lacking - fields.number.begin())).spec.name();
            cause = "the sample has no field of this name, but " +
                    field_names(*block_.schemas[block_.schema[sample_]]);
        }
        throw placed(Error(SHF_E_FORMAT, cause,
                           "name the columns in decode, or set missing=skip or missing=empty"),
                     block_, sample_, name);
    }

    void measure_field(size_t c) {
        const ColumnPlan& plan = column(c);
        unpack(c);
        const std::span<const uint8_t> bytes = bytes_of(c);
        if (plan.decoder) {
            if (out_.fields->schema->of_rows)
                out_.columns[c] = {.type = row_type(bytes), .cheap = true};
            else if (out_.fields->image_of(plan))
                // The image is in a column before, and unpacked.
                out_.columns[c] = plan.decoder->measure_beside(bytes_of(plan.spec.image_column),
                                                               bytes, out_.random);
            else
                out_.columns[c] = measured(*plan.decoder, c);
            check_type(c);
        } else if (bytes.size() > options_.max_decoded) {
            throw Error(SHF_E_LIMIT,
                        "a field of " + plural(bytes.size(), "byte") +
                            " is larger than max_decoded=" + std::to_string(options_.max_decoded),
                        "raise max_decoded");
        } else if (plan.spec.kind == ColumnSpec::Kind::text &&
                   !is_utf8({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
            throw Error(SHF_E_FORMAT, "text that is not UTF-8", "take the field as bytes");
        }
    }

    void unpack(size_t c) {
        const FieldCodec codec = out_.fields->codec[c];
        if (codec == FieldCodec::none) return;
        const FieldView packed = field(c);
        out_.unpacked[c].drop_large_piece();  // of the sample before
        out_.unpacker.unpack(codec, {packed.data, packed.size}, UnpackLimits(options_),
                             out_.unpacked[c]);
    }
    [[nodiscard]] std::span<const uint8_t> bytes_of(size_t c) const {
        return out_.bytes_of(block_, sample_, c);
    }

    [[nodiscard]] Measured measured(const Decoder& decoder, size_t c) const {
        const FieldView start = field(c);
        const std::span<const uint8_t> bytes = bytes_of(c);
        const Deferred rest =
            block_.deferred_of(sample_, static_cast<uint64_t>(out_.fields->number[c]));
        if (rest.size == 0) return decoder.measure(bytes, out_.random);
        // To read it is work for any thread.
        if (const auto copied = decoder.copied(bytes, start.size + rest.size))
            return {.type = copied->type, .cheap = false};
        return decoder.measure(whole_field(block_, start, rest), out_.random);
    }

    void check_type(size_t c) {
        const ColumnPlan& plan = column(c);
        const ArrayType& type = out_.columns[c].type;
        const bool buckets = !plan_.bounds().empty(), pads = buckets && plan.has_length();
        if (pads) check_length(type);
        if (!plan.type) return;
        const ArrayType& first = *plan.type;
        const bool mixed = plan.spec.mixing.any();
        const bool one_shape =
            mixed || (plan.spec.kind != ColumnSpec::Kind::boxes &&
                      (!plan.any_shape() || options_.ragged == Ragged::error || buckets));
        const bool same_kind = type.dtype == first.dtype && type.ndim == first.ndim;
        bool fits = one_shape ? type == first : same_kind;
        if (pads)
            fits = same_kind && std::equal(type.dimensions().begin() + 1, type.dimensions().end(),
                                           first.dimensions().begin() + 1);
        if (fits) return;
        const char* help = "rows of one column have one dtype and number of dimensions";
        if (pads)
            help = "with bucket the arrays of a column differ in their first dimension alone";
        else if (mixed)
            help = "images that are mixed have one size: give them a crop or a resize=WxH";
        else if (buckets)
            help = "with bucket images are resized or cropped to one size";
        else if (one_shape)
            help = "ragged=pad and ragged=offsets take rows of unequal shape";
        throw Error(SHF_E_FORMAT,
                    "an array " + type.text() + " in a column that begins with " + first.text(),
                    help);
    }

    // With the option bucket.
    void check_length(const ArrayType& type) {
        if (type.ndim == 0)
            throw Error(SHF_E_FORMAT, "a number, which has no length",
                        "name the fields with arrays in decode");
        const auto length = static_cast<uint64_t>(type.shape[0]);
        const uint64_t most = plan_.bounds().back();
        if (length > most)
            throw Error(SHF_E_LIMIT,
                        "an array " + type.text() + " is longer than " + std::to_string(most) +
                            ", the last bound of bucket",
                        "add a bound, or leave such samples out with on_error=skip_sample");
        length_ = std::max(length_, length);
    }

    // Rows of tokens and of what belongs to each of them are cut at the same places.
    void check_packed() const {
        const ArrayType* array = nullptr;  // the first one
        for (size_t c = 0; c < out_.columns.size(); ++c) {
            if (column(c).is_text()) continue;  // how many tokens that is nobody knows yet
            const ArrayType& type = out_.columns[c].type;
            if (!array) array = &type;
            const ArrayType& first = *array;
            std::string cause;
            if (type.ndim != 1)
                cause = "an array " + type.text() + ", where pack joins arrays of one dimension";
            else if (type.shape[0] != first.shape[0])
                cause = "an array " + type.text() + " beside one of " +
                        plural(first.elements(), "element") +
                        ", where pack cuts all arrays of a sample at the same places";
            if (!cause.empty())
                about(c, [&] {
                    throw Error(SHF_E_FORMAT, cause, "name the fields to pack in decode");
                });
        }
    }

    // What no batch has room for.
    void check_elements() const {
        for (size_t c = 0; c < out_.columns.size(); ++c) {
            if (out_.fields->number[c] < 0 || !column(c).has_length()) continue;
            ArrayType type = out_.columns[c].type;
            if (!plan_.bounds().empty())
                type.shape[0] = static_cast<int64_t>(plan_.bounds()[out_.bucket]);
            if (type.elements() > options_.batch_elements)
                about(c, [&] {
                    throw Error(
                        SHF_E_LIMIT,
                        "a row " + type.text() + " of " + plural(type.elements(), "element") +
                            ", where batch_elements=" + std::to_string(options_.batch_elements),
                        "raise batch_elements, or leave such samples out with "
                        "on_error=skip_sample");
                });
        }
    }

    BatchPlan& plan_;
    const Options& options_;
    const Block& block_;
    const uint32_t sample_;
    MeasuredSample& out_;
    uint64_t length_ = 0;
};

}  // namespace

bool measure_sample(BatchPlan& plan, const Block& block, uint32_t sample, MeasuredSample& out) {
    return SampleMeasure(plan, block, sample, out).measure();
}

}  // namespace shf
