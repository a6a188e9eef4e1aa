// s3:// among the schemes of Sources.
#pragma once

namespace shf {

// Adds it, once. Before anything is opened.
void add_s3_scheme();

}  // namespace shf
