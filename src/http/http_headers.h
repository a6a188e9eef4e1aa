// The headers that the program adds to requests by the options `headers` and `token`.
#pragma once

#include "http/http_request.h"

namespace shf {

struct Options;

// Adds those of `headers`. Throws Error(USAGE) for a text that is not "Name: value", one on a line
// (RFC 9110, 5.1 and 5.5).
void add_own_headers(HttpRequest& request, const Options& options);
// Adds the token. Throws Error(USAGE).
void add_token(HttpRequest& request, const Options& options);

}  // namespace shf
