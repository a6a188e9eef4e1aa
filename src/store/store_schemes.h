// The object stores among the schemes of Sources.
#pragma once

namespace shf {

// Adds them, once. Before anything is opened.
void add_store_schemes();

}  // namespace shf
