// Opus in Ogg (RFC 6716, 7845): what its packets say of where a sound ends, and of what is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace shf {

// How many frames at 48 kHz a packet has, from its first two bytes (RFC 6716, 3.1). None: no packet
// is that long.
std::optional<int64_t> opus_packet_frames(std::span<const uint8_t> packet);

// Checks a file whose first packet is a header of Opus. Throws Error as check_ogg() does; FORMAT
// also for a header that is none, and a length that is not that of the packets; UNSUPPORTED for
// channels that are no loudspeakers.
void check_ogg_opus(std::span<const uint8_t> file);

}  // namespace shf
