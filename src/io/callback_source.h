// Shards that the program itself gives: a table of functions for a scheme (shf_options_set_source).
#pragma once

#include "io/source.h"

#include <shardfeed.h>

#include <memory>
#include <string>
#include <string_view>

namespace shf {

class SourceFunctions;
struct Options;

// Serves the URLs of `scheme` with `source`, in place of what did before; NULL: with nothing of the
// program. Takes ctx over, unless it throws Error(USAGE).
void set_source(Options& options, std::string_view scheme, const shf_source* source, void* ctx);

// The functions that serve the URLs of `scheme`, or NULL.
std::shared_ptr<const SourceFunctions> source_functions(const Options& options,
                                                        std::string_view scheme);

// Throws Error.
std::unique_ptr<Source> callback_source(std::shared_ptr<const SourceFunctions> functions,
                                        const std::string& url, const Cancel& cancel);

}  // namespace shf
