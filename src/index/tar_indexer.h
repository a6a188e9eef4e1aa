// Makes the index of a tar: of a plain one in one walk over its headers, of a compressed one in one
// decompression, with every check, that finds where decompression can start as well.
#pragma once

#include "index/shard_index.h"

#include <cstdint>
#include <memory>
#include <string>

namespace shf {

class Cancel;
struct Options;

// The options that let a walk accept what it else refuses, as a bit each: 1 end_marker=optional,
// 2 concat=true, 4 trailing=ignore, 8 duplicate_keys=accept, 16 allow_empty=true.
uint64_t leniency_of(const Options& options);

// Throws Error when the shard is damaged or has no samples. The switches of `options` hold, its
// limits of size do not: they are for reading.
std::shared_ptr<const ShardIndex> index_tar(Source& source, const Options& options,
                                            const Cancel& cancel);

}  // namespace shf
