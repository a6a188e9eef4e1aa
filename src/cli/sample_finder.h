// One sample of shards, by key or by number.
#pragma once

#include "cli/library.h"
#include "cli/library_options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

// The first sample with this key. Shards that can be read at any place, ZIP files and tars with an
// index, are; others are read from their start to the sample. Throws Failure when there is none.
Sample find_by_key(const std::vector<std::string>& urls, const std::string& key,
                   const LibraryOptions& options);

// Sample `number` of all, which counts from 0; likewise.
Sample find_by_number(const std::vector<std::string>& urls, uint64_t number,
                      const LibraryOptions& options);

// The field of that name, or the first that is there of several separated by ";" or ",". Sets
// `found` to its name. Throws Failure.
shf_bytes field_of(const shf_sample* sample, const std::string& names, std::string& found);

// Throws Failure where standard output is a terminal and these bytes are no text for it.
void refuse_terminal(std::string_view bytes);

}  // namespace cli
