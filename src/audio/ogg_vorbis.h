// Vorbis in Ogg (Vorbis I, 4.2 and appendix A.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shf {

// Whether a file begins with a page of Ogg, and its first packet is that of Vorbis.
bool is_ogg_vorbis(std::span<const uint8_t> file);

// Positions count frames. That of a page is behind its last packet, so the start of a sound follows
// from how many frames the packets of its first page have.
struct VorbisPositions {
    size_t first_packets = 0;     // that end on the first page of sound
    uint64_t first = 0, end = 0;  // of that page, and of the last one
    bool is_one_page = false;     // the end may be within a packet of it
};

// Of such a file. Throws Error: what check_ogg() says; FORMAT too for headers that are none or
// missing, and positions that do not ascend. What is in the packets is for the decoder to find.
VorbisPositions check_ogg_vorbis(std::span<const uint8_t> file);

}  // namespace shf
