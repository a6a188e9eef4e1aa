// What a shuffle buffer holds, recomputed from the numbers that it drew: so a saved state needs no
// list of it.
#pragma once

#include "core/random.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shf {

struct ShuffleHistory {
    uint64_t size = 0;    // of the buffer
    uint64_t put = 0;     // samples that came in, numbered 0, 1, ...
    uint64_t taken = 0;   // samples that were drawn
    bool closed = false;  // all that will come have come

    // Draws out of a full buffer. The others, out of one that nothing comes into, follow them.
    [[nodiscard]] uint64_t draws_while_full() const {
        if (!closed) return taken;
        return put < size ? 0 : std::min(taken, put - size + 1);
    }
};

// The numbers of the samples that lie in slot 0, 1, ... of a ShuffleBuffer with this history, when
// `random` is what it draws from, in its present state. Looks back as far as it must: about
// size * ln(size) draws. Throws Error(FORMAT) for a history that no buffer can have.
std::vector<uint64_t> shuffle_slots(const ShuffleHistory& history, const Random& random);

}  // namespace shf
