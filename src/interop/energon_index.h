// SHARD.tar.idx of Megatron-Energon: unsigned 64-bit numbers, little endian. One per sample, where
// the first header of its first member starts; then where the end marker of the tar starts.
#pragma once

#include "interop/foreign_samples.h"

#include <string>
#include <string_view>

namespace shf {

// The bytes of the file, as Energon writes them. Throws Error when it has no samples.
std::string energon_index(const TarFiles& files);

// Throws Error (FORMAT, CHANGED) unless the file is of this tar, with the samples as Energon or
// shardfeed sees them.
void check_energon_index(std::string_view bytes, const TarFiles& files);

}  // namespace shf
