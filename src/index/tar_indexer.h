// Makes the index of a plain tar in one walk over its headers.
#pragma once

#include "index/shard_index.h"

#include <memory>
#include <string>

namespace shf {

class Cancel;
struct Options;

// Throws Error when the shard is damaged, compressed (UNSUPPORTED), or has no samples. The switches
// of `options` hold, its limits of size do not: they are for reading.
std::shared_ptr<const ShardIndex> index_tar(Source& source, const Options& options,
                                            const Cancel& cancel);

}  // namespace shf
