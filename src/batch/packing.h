// Rows of one length, of the arrays of samples: documents of tokens joined one after another, and
// cut where a row is full.
#pragma once

#include "batch/batch.h"
#include "core/options.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shf {

// Beside the packed columns, one number for each of their elements: which document of its row it is
// of, from 0 on, and its place in that document. Both int64; -1 where nothing fills the last row.
inline constexpr std::string_view document_column = "__document__",
                                  position_column = "__position__";

inline uint64_t elements_of_batch(const Options& options) {
    return options.batch * options.pack;  // both have less than 33 bits
}

// Elements of row `row` of a batch made with the option pack; of each column.
inline uint64_t elements_of(const Batch& batch, uint64_t row) {
    const int64_t* offsets = batch.columns[0].offsets();
    return static_cast<uint64_t>(offsets[row + 1] - offsets[row]);
}

// Elements of one sample that follow each other, or zeros.
struct DocumentPart {
    const Batch* batch;  // NULL: of zeros, which end a row
    uint64_t row;
    uint64_t begin = 0;
    uint64_t count = 0;  // at least one
};

// Rows of at most `width` elements of these documents, each cut only where it is longer than a
// row. What is shorter goes to the row with the least room that is enough, the longest first (best
// fit decreasing). Rows come in the order of the last document that they have a part of; without
// some of them, and what they have, the others would be the same. No row has zeros.
std::vector<std::vector<DocumentPart>> fit_documents(std::span<const DocumentPart> documents,
                                                     uint64_t width);

// A batch of rows of `width` elements, of these parts one after another; zeros fill the last row.
// Each row has the key and the URL of the sample that it begins with. At least one part, all from
// batches of one plan. `allocate` gives memory of at least so many bytes, or throws.
BatchRef pack_documents(std::span<const DocumentPart> parts, uint64_t width,
                        const std::function<StorageRef(uint64_t)>& allocate);

}  // namespace shf
