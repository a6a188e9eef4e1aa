// A filter over a compressed shard whose points are known: it starts at any of them, and several
// threads decompress.
#pragma once

#include "codec/decode_points.h"
#include "codec/filter.h"
#include "io/source.h"

#include <cstdint>
#include <memory>

namespace shf {

class Cancel;

// Reads what open_filter() reads from the start of `source`, and gives the same bytes and the same
// errors. Every stretch is proven by its checksum before a byte of it is returned; when it cannot
// be, the shard is decompressed from its start, and what is wrong is said as without points.
// skip() goes to the next point. Up to `threads` threads decompress, from the first read() on, and
// hold up to memory / 4. The references must outlive the result.
std::unique_ptr<Sequential> open_indexed_filter(Source& source,
                                                std::shared_ptr<const DecodePoints> points,
                                                const Options& options, const Cancel& cancel,
                                                uint64_t threads, FilterReport& report);

}  // namespace shf
