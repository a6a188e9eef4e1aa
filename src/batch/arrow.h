// A batch for programs that take the Arrow C data interface
// (https://arrow.apache.org/docs/format/CDataInterface.html).
#pragma once

#include "batch/batch.h"

namespace shf {

// Fills a struct ArrowArray and a struct ArrowSchema with a record batch. Each keeps what it needs
// until its release callback is called. Throws Error(UNSUPPORTED) for keys, URLs and names that are
// not UTF-8, and std::bad_alloc; then neither is filled.
void to_arrow(Batch& batch, void* array, void* schema);

}  // namespace shf
