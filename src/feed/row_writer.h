// Decodes samples into the rows of a message, straight to where they lie in it.
#pragma once

#include "batch/batch_plan.h"
#include "core/options.h"
#include "decode/decoder.h"
#include "decode/field_unpacker.h"
#include "feed/feed_block.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shf {

// One thread at a time.
class RowWriter {
  public:
    // Of the option decode. Throws Error(USAGE) for a bad one.
    explicit RowWriter(const Options& options);

    // Adds the sample. One that cannot be decoded becomes its fault, for the consumer to treat as
    // his option on_error says. Throws std::bad_alloc.
    void add(const Block& block, uint32_t sample, FeedBlockWriter& out);

  private:
    BatchPlan& plan_of(const Schema& schema);
    std::span<const uint8_t> bytes_of_column(const BatchPlan::Fields& fields, size_t column,
                                             const Block& block, uint32_t sample);
    void add_column(const BatchPlan& plan, const BatchPlan::Fields& fields, size_t column,
                    const Block& block, uint32_t sample, FeedBlockWriter& out);
    static std::span<uint8_t> add_row(const ColumnPlan& column, const ArrayType& type,
                                      FeedBlockWriter& out);
    void add_chosen(const BatchPlan& plan, const BatchPlan::Fields& fields, size_t column,
                    const Block& block, uint32_t sample, FeedBlockWriter& out);

    const Options options_;
    BatchPlan plan_;
    // With decode=auto, by the names of the fields: what the first sample has decides for itself.
    std::map<std::string, std::unique_ptr<BatchPlan>> plans_;
    DecodeScratch scratch_;
    FieldUnpacker unpacker_;
    std::vector<UnpackedField> unpacked_;  // of each column
};

}  // namespace shf
