#include "batch/batch_plan.h"

#include "batch/row_field.h"
#include "core/error.h"
#include "core/random.h"
#include "decode/audio_decoder.h"
#include "decode/box_decoder.h"
#include "decode/image_decoder.h"
#include "decode/npy.h"
#include "decode/number.h"
#include "decode/number_list.h"
#include "decode/safetensors.h"
#include "decode/ten.h"
#include "decode/video_decoder.h"
#include "sample/name.h"

#include <algorithm>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

namespace shf {

namespace {

std::unique_ptr<Decoder> decoder_for(const ColumnSpec& spec, uint64_t max_decoded) {
    using Kind = ColumnSpec::Kind;
    switch (spec.kind) {
        case Kind::bytes:
        case Kind::text:
        case Kind::json:
        case Kind::msgpack: return nullptr;
        case Kind::integer: return integer_decoder();
        case Kind::real: return real_decoder();
        case Kind::npy: return npy_decoder(max_decoded);
        case Kind::npz: return npz_decoder(spec.member, max_decoded);
        case Kind::ten: return ten_decoder(spec.part, max_decoded);
        case Kind::safetensors: return safetensors_decoder(spec.member, max_decoded);
        case Kind::list: return list_decoder(spec.member, max_decoded);
        case Kind::image: return image_decoder(spec.image, max_decoded);
        case Kind::audio: return audio_decoder(spec.audio, spec.video, spec.image, max_decoded);
        case Kind::video: return video_decoder(spec.video, spec.image, max_decoded);
        case Kind::boxes: return box_decoder(spec.boxes, spec.image, max_decoded);
    }
    return nullptr;
}

bool is_npy(const ColumnSpec& column) {
    return column.kind == ColumnSpec::Kind::npy;
}

}  // namespace

std::function<bool(std::string_view field)> fields_to_copy(const Options& options) {
    DecodeSpec spec = DecodeSpec::parse(options.decode);
    if (!spec.automatic && std::none_of(spec.columns.begin(), spec.columns.end(), is_npy))
        return {};
    return [spec = std::move(spec)](std::string_view field) {
        std::string name;
        append_lowered(name, field);
        if (field_codec(name).first != FieldCodec::none) return false;
        if (spec.automatic) return is_npy(column_for(name));
        bool copied = false;
        for (const ColumnSpec& column : spec.columns) {
            if (std::find(column.fields.begin(), column.fields.end(), name) == column.fields.end())
                continue;
            if (!is_npy(column)) return false;
            copied = true;
        }
        return copied;
    };
}

namespace {

// Samples that are packed, or counted by their elements, have any length.
Options with_lengths(Options options) {
    if (options.pack > 0)
        options.ragged = Ragged::offsets;
    else if (!options.bucket.empty() ||
             (options.batch_elements > 0 && options.ragged == Ragged::error))
        options.ragged = Ragged::pad;
    return options;
}

// Of the option bucket: "64,128,256".
std::vector<uint64_t> parse_bounds(std::string_view text) {
    constexpr size_t most = 64;
    constexpr uint64_t longest = uint64_t{1} << 32;
    std::vector<uint64_t> bounds;
    for (size_t begin = 0; begin < text.size() || !bounds.empty();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        size_t first = begin, last = end;
        while (first < last && text[first] == ' ') ++first;
        while (last > first && text[last - 1] == ' ') --last;
        uint64_t bound = 0;
        const auto [stop, error] = std::from_chars(text.data() + first, text.data() + last, bound);
        if (error != std::errc() || stop != text.data() + last || bound == 0 || bound > longest)
            refuse_text("bucket", text, first, "a bound of lengths is a number from 1 to 2^32",
                        "for example bucket=64,128,256");
        if (!bounds.empty() && bound <= bounds.back())
            refuse_text("bucket", text, first, "bounds ascend", "for example bucket=64,128,256");
        if (bounds.size() == most)
            refuse_text("bucket", text, first, "more than " + plural(most, "bucket"),
                        "leave some out");
        bounds.push_back(bound);
        if (end == text.size()) break;
        begin = end + 1;
    }
    return bounds;
}

}  // namespace

BatchPlan::BatchPlan(const Options& options)
    : options_(with_lengths(options)), bounds_(parse_bounds(options.bucket)) {
    DecodeSpec spec = DecodeSpec::parse(options.decode);
    automatic_ = undecided_ = spec.automatic;
    for (ColumnSpec& column : spec.columns) add(std::move(column));
    if (!automatic_) check_columns();
}

void BatchPlan::check_columns() const {
    check_lengths();
    if (options_.tokenizer && options_.pack > 0 &&
        std::none_of(columns_.begin(), columns_.end(),
                     [](const ColumnPlan& column) { return column.is_text(); }))
        throw Error(SHF_E_USAGE, "tokenizer: no column of decode is text",
                    "name the fields with texts in decode, for example decode=\"txt\"");
}

// What counts lengths needs some.
void BatchPlan::check_lengths() const {
    const bool buckets = !bounds_.empty();
    if (!buckets && options_.batch_elements == 0) return;
    for (const ColumnPlan& column : columns_) {
        const ColumnSpec& spec = column.spec;
        if (buckets && spec.kind == ColumnSpec::Kind::audio && spec.audio.channels_first &&
            !spec.audio.mono)
            throw Error(SHF_E_USAGE,
                        "bucket: of the column " + escape(spec.name()) +
                            " the first dimension is of channels, not of its length",
                        "leave out cf in decode");
    }
    if (std::any_of(columns_.begin(), columns_.end(),
                    [](const ColumnPlan& column) { return column.has_length(); }))
        return;
    throw Error(SHF_E_USAGE,
                std::string(buckets ? "bucket" : "batch_elements") +
                    ": no column of decode has arrays of any length",
                "name fields with arrays or sounds in decode, for example decode=\"npy\"");
}

void BatchPlan::add(ColumnSpec spec) {
    using Kind = ColumnSpec::Kind;
    // Nothing else of JSON can be packed.
    if (options_.pack > 0 && spec.kind == Kind::json && !spec.records) spec.kind = Kind::list;
    any_choice_ = any_choice_ || spec.kind == Kind::image || spec.kind == Kind::audio ||
                  spec.kind == Kind::video;
    auto decoder = decoder_for(spec, options_.max_decoded);
    const bool is_text = options_.tokenizer && spec.kind == Kind::text;
    if (options_.pack > 0 && !is_text &&
        (spec.kind < Kind::npy || spec.kind == Kind::image || spec.kind == Kind::video ||
         spec.kind == Kind::boxes))
        throw Error(SHF_E_USAGE,
                    "pack joins arrays, and the column " + escape(spec.name()) + " has none",
                    std::string("name the fields with tokens in decode, for example "
                                "decode=\"npy\"") +
                        (spec.kind == Kind::text ? ", or give a tokenizer of texts" : ""));
    columns_.push_back({.spec = std::move(spec), .decoder = std::move(decoder), .type = {}});
    // A number is always the same.
    if (ColumnPlan& column = columns_.back(); column.decoder && !column.any_shape())
        column.type = column.decoder->measure({}, 0).type;
    else if (column.spec.kind == Kind::boxes)
        column.type = box_type(column.spec.boxes, 0);
}

const BatchPlan::Fields& BatchPlan::fields_of(const std::shared_ptr<const Schema>& schema) {
    if (last_ && last_->schema == schema) return *last_;
    // As many lists of names as this are not worth a table.
    constexpr size_t most = 1024;
    if (known_.size() >= most) known_.clear();
    const auto [place, fresh] = known_.try_emplace(schema.get());
    last_ = nullptr;
    if (fresh) {
        try {
            fill(place->second, schema);
        } catch (...) {
            known_.erase(place);
            throw;
        }
    }
    last_ = &place->second;
    return *last_;
}

// The columns of decode=auto: all of them, or none when it throws.
void BatchPlan::fix_columns(std::span<const std::string> names) {
    try {
        for (const std::string& name : names) add(column_for(name));
        check_columns();
    } catch (...) {
        columns_.clear();
        throw;
    }
    undecided_ = false;
}

void BatchPlan::fill(Fields& fields, const std::shared_ptr<const Schema>& schema) {
    fields.schema = schema;
    if (schema->of_rows && schema->names == std::string(fault_field) + '/') {
        fields.fault = 0;
        return;
    }
    if (undecided_) {
        std::vector<std::string> names;
        for (size_t i = 0; i < schema->ends.size(); ++i) names.emplace_back(schema->name(i));
        fix_columns(names);
    }
    std::vector<bool> taken(schema->ends.size());
    for (const ColumnPlan& column : columns_) {
        // What was chosen is a field of rows that were decoded elsewhere, and of nothing else.
        const bool of_no_field = column.spec.pairs || (column.spec.records && !schema->of_rows);
        int32_t number = -1;
        const std::vector<std::string> decoded{row_field_of(column.spec)};
        for (const std::string& name : schema->of_rows ? decoded : column.spec.fields)
            for (size_t i = 0; i < schema->ends.size() && number < 0 && !of_no_field; ++i)
                if (schema->name(i) == name) number = static_cast<int32_t>(i);
        if (of_no_field || (column.spec.records && number < 0)) {
            fields.number.push_back(column.spec.pairs ? Fields::paired : Fields::recorded);
            fields.codec.push_back(FieldCodec::none);
            continue;
        }
        // Boxes are nowhere without their image.
        if (column.spec.kind == ColumnSpec::Kind::boxes &&
            fields.number[column.spec.image_column] < 0)
            number = -1;
        fields.number.push_back(number);
        fields.codec.push_back(number < 0 || column.spec.compressed || schema->of_rows
                                   ? FieldCodec::none
                                   : field_codec(schema->name(static_cast<size_t>(number))).first);
        if (number >= 0)
            taken[static_cast<size_t>(number)] = true;
        else
            fields.complete = false;
    }
    for (size_t i = 0; automatic_ && i < taken.size(); ++i)
        if (!taken[i]) fields.unexpected = schema->name(i);
}

namespace {

// Texts one after another, each with its length before it.
void add_text(std::string& to, std::string_view text) {
    to += std::to_string(text.size()) + ':';
    to += text;
}

[[noreturn]] void bad_columns() {
    throw Error(SHF_E_FORMAT, "the saved state has columns that are none",
                "restore the state as it was saved");
}

std::string_view take_text(std::string_view& from) {
    size_t size = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), size);
    const auto digits = static_cast<size_t>(end - from.data());
    if (error != std::errc() || digits >= from.size() || from[digits] != ':' ||
        size > from.size() - digits - 1)
        bad_columns();
    const std::string_view text = from.substr(digits + 1, size);
    from.remove_prefix(digits + 1 + size);
    return text;
}

std::string type_text(const ArrayType& type) {
    std::string text = std::to_string(static_cast<int32_t>(type.dtype));
    for (const int64_t size : type.dimensions()) text += ' ' + std::to_string(size);
    return text;
}

ArrayType type_of(std::string_view text) {
    const auto number = [&]() -> int64_t {
        int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || value < 0) bad_columns();
        text.remove_prefix(static_cast<size_t>(end - text.data()));
        if (!text.empty()) text.remove_prefix(1);
        return value;
    };
    ArrayType type;
    const int64_t dtype = number();
    if (dtype > static_cast<int64_t>(DType::bf16)) bad_columns();
    type.dtype = static_cast<DType>(dtype);
    for (; !text.empty(); ++type.ndim) {
        if (static_cast<size_t>(type.ndim) == max_row_dimensions) bad_columns();
        type.shape[static_cast<size_t>(type.ndim)] = number();
    }
    if (type.bytes() > uint64_t{1} << 62) bad_columns();
    return type;
}

}  // namespace

std::string BatchPlan::saved_columns() const {
    std::string text;
    if (undecided_ || known_.empty()) return text;
    add_text(text, options_.decode);
    for (const ColumnPlan& column : columns_) {
        add_text(text, column.spec.name());
        add_text(text, column.type ? type_text(*column.type) : "");
    }
    return text;
}

void BatchPlan::restore_columns(std::string_view text) {
    if (text.empty() || take_text(text) != options_.decode) return;
    // All is read before anything is changed.
    std::vector<std::string> names;
    std::vector<std::optional<ArrayType>> types;
    while (!text.empty()) {
        names.emplace_back(take_text(text));
        const std::string_view type = take_text(text);
        types.push_back(type.empty() ? std::nullopt : std::optional(type_of(type)));
    }
    if (!undecided_ && !std::equal(names.begin(), names.end(), columns_.begin(), columns_.end(),
                                   [](const std::string& name, const ColumnPlan& column) {
                                       return column.spec.name() == name;
                                   }))
        bad_columns();
    if (undecided_) fix_columns(names);
    for (size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].any_shape()) columns_[i].type = types[i];
}

uint64_t BatchPlan::random_of(const Block& block, uint32_t sample) const {
    if (!any_choice_) return 0;
    const Origin& origin = *block.origins[block.origin[sample]];
    const std::string_view key = block.key_of(sample);
    return Random(Random::sample_augmentation,
                  {options_.seed, origin.by_number ? options_.epoch : origin.epoch, origin.shard,
                   XXH3_64bits(key.data(), key.size())})
        .next();
}

}  // namespace shf
