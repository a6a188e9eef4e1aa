// A stream whose shards servers of a feed read.
#pragma once

#include "core/options.h"
#include "stream/stream.h"

#include <memory>
#include <span>

namespace shf {

// Of servers at these URLs, for which is_feed() holds. Waits for one of them. Throws Error.
std::unique_ptr<Stream> open_fed_stream(std::span<const char* const> urls, const Options& options);

}  // namespace shf
