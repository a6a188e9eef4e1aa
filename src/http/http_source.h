// Shards that a server gives by HTTP.
#pragma once

#include "http/http_store.h"
#include "io/source.h"
#include "io/source_context.h"

#include <memory>
#include <string>

namespace shf {

// Asks for the start of the object, so that its size and version are known, and whether the server
// gives ranges of it. Throws Error.
std::unique_ptr<Source> http_source(std::shared_ptr<HttpStore> store, std::string target,
                                    const SourceContext& context);

}  // namespace shf
