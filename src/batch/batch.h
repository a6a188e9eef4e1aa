// A batch: the decoded fields of some samples, one column for each field, and their keys and
// shards.
#pragma once

#include "batch/decode_spec.h"
#include "core/array.h"
#include "core/memory.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// One column. Three kinds of layout:
//   even    ndim >= 1, shape[0] is the number of rows; row i is a stretch of `values`
//   ragged  `offsets` has the first element of each row, and one past the last; `shapes`, when rows
//           have more than one dimension, the shape of each
//   padded  even, and `shapes` has the shape that each row had before
struct BatchColumn {
    std::string name;
    ColumnSpec::Kind kind = ColumnSpec::Kind::bytes;
    DType dtype = DType::u8;
    bool ragged = false;
    bool bounded = false;      // padded to a length that does not depend on the rows
    ArrayType row;             // even: of each row; ragged: dtype and number of dimensions
    StorageRef values;         // empty when there are none
    uint64_t bytes = 0;        // of values in use
    StorageRef offset_memory;  // int64: rows + 1
    StorageRef shape_memory;   // int64: rows times row.ndim

    [[nodiscard]] const int64_t* offsets() const {
        return offset_memory ? reinterpret_cast<const int64_t*>(offset_memory->data) : nullptr;
    }
    [[nodiscard]] const int64_t* shapes() const {
        return shape_memory ? reinterpret_cast<const int64_t*>(shape_memory->data) : nullptr;
    }
};

// Immutable once made, but for the numbers themselves: they belong to whoever has the batch.
struct Batch {
    std::atomic<uint64_t> references{1};
    uint64_t rows = 0;
    // The last two are the keys and the redacted URLs of the shards: "__key__" and "__url__".
    std::vector<BatchColumn> columns;

    [[nodiscard]] const BatchColumn* find(std::string_view name) const;
    [[nodiscard]] std::string_view text_of(const BatchColumn& column, uint64_t row) const;
    [[nodiscard]] const BatchColumn& keys() const { return columns[columns.size() - 2]; }

    void ref() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    void unref() noexcept {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
    // All memory now belongs to the user and no longer counts as held.
    void hand_out() const;
    // Of all columns.
    [[nodiscard]] uint64_t bytes() const;
};

struct BatchUnref {
    void operator()(Batch* batch) const noexcept { batch->unref(); }
};
using BatchRef = std::unique_ptr<Batch, BatchUnref>;

inline constexpr std::string_view key_column = "__key__", url_column = "__url__";
// With even=pad, before those two: false in rows that only fill up an epoch.
inline constexpr std::string_view valid_column = "__valid__";

}  // namespace shf
