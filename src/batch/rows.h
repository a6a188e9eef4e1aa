// Rows of batches, copied.
#pragma once

#include "batch/batch.h"

#include <cstdint>
#include <functional>
#include <span>

namespace shf {

// Copies an array into the corner of a larger one of the same dtype and number of dimensions.
void copy_padded(const uint8_t* in, const ArrayType& type, uint8_t* out, const ArrayType& larger);

struct RowOfBatch {
    const Batch* batch;
    uint64_t row;
};

// Column number `column` of these rows, which are at least one.
BatchColumn gather_column(std::span<const RowOfBatch> rows, size_t column,
                          const std::function<StorageRef(uint64_t)>& allocate);

// A new batch of these rows, at least one, all from batches of one plan. `allocate` gives memory of
// at least so many bytes, or throws. Throws Error(FORMAT) when their shapes do not go together.
BatchRef gather_rows(std::span<const RowOfBatch> rows,
                     const std::function<StorageRef(uint64_t)>& allocate);

}  // namespace shf
