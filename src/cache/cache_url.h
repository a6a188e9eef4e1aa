// The name of a shard in the cache.
#pragma once

#include <string>

namespace shf {

// The URL without secrets: no userinfo, host and scheme in lower case; of a query, which may tell
// one object from another, a hash of what is no signature, token or expiry date.
std::string cache_url(const std::string& url);

}  // namespace shf
