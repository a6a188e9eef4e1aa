// Batches of samples that are at hand.
#pragma once

#include "batch/batch_builder.h"

#include <span>

namespace shf {

// Throws Error: that of the first bad sample in the list, or FORMAT when missing=skip leaves none.
BatchRef make_batch(std::span<Sample* const> samples, const Options& options,
                    const Allocate& allocate);

}  // namespace shf
