// http:// and https:// among the schemes of Sources.
#pragma once

namespace shf {

// Adds them, once. Before anything is opened.
void add_http_schemes();

}  // namespace shf
