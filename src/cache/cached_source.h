// Shards of the network through the cache.
#pragma once

#include "io/source.h"
#include "io/source_context.h"

#include <memory>
#include <string>

namespace shf {

struct Options;
struct Scheme;

// Opens the shard through the cache in the folder options.cache: the version that is there now,
// or, with stale_ok and without network, the one that was opened last. What cannot be cached (no
// version, no ranges) or when the folder cannot be used, gives the shard as it is. The references
// must outlive it; `use` may be NULL. Throws Error: as the scheme; LIMIT for a shard larger than
// cache_size.
std::unique_ptr<Source> open_cached(const Scheme& scheme, const std::string& url,
                                    const SourceContext& context);

// The version that open_cached would give.
Identity stat_cached(const Scheme& scheme, const std::string& url, const SourceContext& context);

// Puts it between Sources and the schemes that were added there.
void add_cache();

}  // namespace shf
