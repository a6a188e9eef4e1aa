// What the fields of a sample become, found from their first bytes before any is decoded, and
// whether that can be a row.
#pragma once

#include "batch/batch_plan.h"
#include "core/error.h"
#include "decode/decoder.h"
#include "decode/field_unpacker.h"
#include "sample/block.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shf {

struct MeasuredSample {
    const BatchPlan::Fields* fields = nullptr;  // of the plan, until it measures the next sample
    uint64_t random = 0;                        // the key of its random choices
    std::vector<Measured> columns;              // of those whose field the sample has
    std::vector<UnpackedField> unpacked;        // of those whose field is compressed
    // With the option bucket, the number of its bucket: for the longest of its arrays.
    size_t bucket = 0;
    FieldUnpacker unpacker;

    // What is here of the field of a column, unpacked.
    [[nodiscard]] std::span<const uint8_t> bytes_of(const Block& block, uint32_t sample,
                                                    size_t column) const {
        if (fields->codec[column] != FieldCodec::none) return unpacked[column].bytes();
        const FieldView field =
            block.field_of(sample, static_cast<uint64_t>(fields->number[column]));
        return {field.data, field.size};
    }
};

// False: the sample is skipped, for lack of a field. Throws Error, with shard, member and
// offset: a field is no array of its kind, or does not go with those of other samples, or is longer
// than the options allow.
bool measure_sample(BatchPlan& plan, const Block& block, uint32_t sample, MeasuredSample& out);

// Says where a fault is.
Error placed(const Error& error, const Block& block, uint32_t sample, std::string_view field);

// A field of which only the start is in the block, in one piece.
std::vector<uint8_t> whole_field(const Block& block, const FieldView& field, const Deferred& rest);
// What is here, and behind it what is still in the shard: straight to where it is wanted.
void copy_whole_field(std::span<const uint8_t> start, Source& source, const Deferred& rest,
                      std::span<uint8_t> out);

}  // namespace shf
