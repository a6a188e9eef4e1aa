// How many samples each shard has, without reading them.
#pragma once

#include "core/cancel.h"
#include "io/urls.h"
#include "sample/sample_filter.h"

#include <cstdint>
#include <vector>

namespace shf {

// Of every shard of the list, as the filter leaves them: from the index file of a tar, from the
// directory of a ZIP file. Throws Error: NOT_FOUND for a tar without a good index file.
std::vector<uint32_t> count_samples(const ShardList& shards, const Options& options,
                                    const SampleFilter& filter);

}  // namespace shf
