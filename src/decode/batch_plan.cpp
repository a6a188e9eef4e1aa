#include "decode/batch_plan.h"

#include "core/error.h"
#include "core/random.h"
#include "decode/npy.h"
#include "decode/number.h"

#include <algorithm>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

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
        case Kind::image: return image_decoder(spec.image, max_decoded);
    }
    return nullptr;
}

}  // namespace

BatchPlan::BatchPlan(const Options& options) : options_(options) {
    DecodeSpec spec = DecodeSpec::parse(options.decode);
    automatic_ = unsettled_ = spec.automatic;
    for (ColumnSpec& column : spec.columns) add(std::move(column));
}

void BatchPlan::add(ColumnSpec spec) {
    any_image_ = any_image_ || spec.kind == ColumnSpec::Kind::image;
    auto decoder = decoder_for(spec, options_.max_decoded);
    columns_.push_back({.spec = std::move(spec), .decoder = std::move(decoder), .type = {}});
    // A number is always the same.
    if (ColumnPlan& column = columns_.back(); column.decoder && !column.any_shape())
        column.type = column.decoder->measure({}, 0).type;
}

const BatchPlan::Fields& BatchPlan::fields_of(const std::shared_ptr<const Schema>& schema) {
    if (last_ && last_->schema == schema) return *last_;
    // As many lists of names as this are not worth a table.
    constexpr size_t most = 1024;
    if (known_.size() >= most) known_.clear();
    const auto [place, fresh] = known_.try_emplace(schema.get());
    last_ = &place->second;
    if (!fresh) return *last_;
    Fields& fields = place->second;
    fields.schema = schema;
    if (std::exchange(unsettled_, false))
        for (size_t i = 0; i < schema->ends.size(); ++i) add(column_for(schema->name(i)));
    std::vector<bool> taken(schema->ends.size());
    for (const ColumnPlan& column : columns_) {
        int32_t number = -1;
        for (const std::string& name : column.spec.fields)
            for (size_t i = 0; i < schema->ends.size() && number < 0; ++i)
                if (schema->name(i) == name) number = static_cast<int32_t>(i);
        fields.number.push_back(number);
        if (number >= 0)
            taken[static_cast<size_t>(number)] = true;
        else
            fields.complete = false;
    }
    for (size_t i = 0; automatic_ && i < taken.size(); ++i)
        if (!taken[i]) fields.unexpected = schema->name(i);
    return fields;
}

uint64_t BatchPlan::random_of(const Block& block, uint32_t sample) const {
    if (!any_image_) return 0;
    const Origin& origin = *block.origins[block.origin[sample]];
    const std::string_view key = block.key_of(sample);
    return Random(Random::sample_augmentation,
                  {options_.seed, origin.epoch, origin.shard, XXH3_64bits(key.data(), key.size())})
        .next();
}

}  // namespace shf
