// A column for programs that take DLPack (https://dmlc.github.io/dlpack/, ABI version 1.0).
#pragma once

#include "batch/batch.h"

namespace shf {

// A DLManagedTensor, or a DLManagedTensorVersioned, of the numbers of a column; of a ragged one
// those of all rows. Keeps the batch until its deleter is called. Throws std::bad_alloc.
void* to_dlpack(Batch& batch, size_t column, bool versioned);

}  // namespace shf
