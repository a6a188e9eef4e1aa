// Shards at http:// and https:// URLs.
#pragma once

#include "io/source.h"

#include <memory>
#include <string>

namespace shf {

struct Options;

// Asks for the start of the object, so that its size and version are known, and whether the server
// gives ranges of it. Throws Error.
std::unique_ptr<Source> http_source(const std::string& url, const Options& options,
                                    const Cancel& cancel);

}  // namespace shf
