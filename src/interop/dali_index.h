// Index files of DALI's webdataset reader. A line "VERSION COUNT"; then a line for each sample with
// its members, all parts separated by single blanks:
//   v1.2  EXTENSION OFFSET SIZE NAME
//   v1.1  EXTENSION OFFSET SIZE
//   v1.0  what was before: EXTENSION SIZE OFFSET, says DALI, which no longer reads it; the tool of
//         AMD's rocAL writes the columns of v1.2 under it
// EXTENSION is what follows the first dot of the last component, OFFSET is of the data.
#pragma once

#include "interop/foreign_samples.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

enum class DaliVersion : uint8_t { v1_0, v1_1, v1_2 };

// The text of the file, as wds2idx writes it, but right for GNU long names; for v1.0 with the
// columns that DALI names. Throws Error (UNSUPPORTED) for names that the text cannot hold.
std::string dali_index(const TarFiles& files, DaliVersion version);

// Throws Error (UNSUPPORTED) for a name that the text of v1.2 cannot hold.
void check_dali_name(std::string_view name);

// Throws Error (FORMAT, CHANGED, UNSUPPORTED) unless the file, of any version, is of this tar, with
// the samples as wds2idx or shardfeed sees them. A file of v1.0 has the columns that fit the shard
// in every line.
void check_dali_index(std::string_view text, const TarFiles& files);

}  // namespace shf
