// How saved states are stored: a sealed map (core/sealed_map.h) of numbers in LEB128.
#pragma once

#include "order/stream_state.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shf {

// No number in a state is larger, so that sums of two do not overflow.
inline constexpr uint64_t largest_in_state = uint64_t{1} << 62;

// A small blob with a version and a checksum.
std::vector<uint8_t> encode(const StreamState& state);
// Throws Error(FORMAT, INTEGRITY, UNSUPPORTED) for anything that encode() did not make.
StreamState decode_state(std::span<const uint8_t> blob);

// Error(FORMAT): the saved state WHAT.
[[noreturn]] void throw_damaged_state(const std::string& what);

}  // namespace shf
