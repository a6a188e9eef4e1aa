// Decodes samples into the rows of a message, straight to where they lie in it.
#pragma once

#include "batch/batch_plan.h"
#include "core/options.h"
#include "decode/decoder.h"
#include "feed/feed_block.h"

#include <map>
#include <memory>
#include <string>

namespace shf {

// One thread at a time.
class RowWriter {
  public:
    // Of the option decode. Throws Error(USAGE) for a bad one, and for columns that are made of
    // whole batches.
    explicit RowWriter(const Options& options);

    // Adds the sample. A field that cannot be decoded becomes the fault, for the consumer to treat
    // as his option on_error says. Throws std::bad_alloc.
    void add(const Block& block, uint32_t sample, FeedBlockWriter& out);

  private:
    BatchPlan& plan_of(const Schema& schema);
    void add_column(const BatchPlan& plan, const BatchPlan::Fields& fields, size_t column,
                    const Block& block, uint32_t sample, FeedBlockWriter& out);

    const Options options_;
    BatchPlan plan_;
    // With decode=auto, by the names of the fields: what the first sample has decides for itself.
    std::map<std::string, std::unique_ptr<BatchPlan>> plans_;
    DecodeScratch scratch_;
};

}  // namespace shf
