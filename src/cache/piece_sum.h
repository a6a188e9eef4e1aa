// The checksum of pieces of blocks: XXH3, 64 bits. Compiled for the wide registers of newer
// processors too, since it is what a reading from the cache takes beyond one of a file: half of the
// time that the copy takes with those of every x86-64, a quarter with wider ones.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shf {

using PieceSum = uint64_t (*)(const iovec* parts, size_t count);

uint64_t piece_sum(std::span<const uint8_t> bytes);
// The same for a piece that is split over several buffers, in their order.
uint64_t piece_sum(std::span<const iovec> parts);

// All that this processor can run; the last one is used. They give the same.
std::vector<PieceSum> piece_sums();

}  // namespace shf
