// http:// and https:// among the schemes of Sources.
#pragma once

namespace shf {

// Adds them, once. Before anything is opened.
void add_http_schemes();

// "libcurl 7.88.1": the library that makes the requests. Throws Error when it cannot be loaded.
const char* http_library();

}  // namespace shf
