// The .npy format of numpy, versions 1 to 3 (numpy.lib.format), and the members of .npz files. The
// header is a Python literal; it is read by its grammar, never evaluated.
#pragma once

#include "decode/decoder.h"

#include <memory>
#include <string>

namespace shf {

// What the header of an .npy says.
struct NpyHeader {
    ArrayType type;  // the shape as numpy shows it
    bool fortran_order = false;
    bool swapped = false;  // the bytes of each word are in the other order than this machine's
    size_t data = 0;       // where the numbers begin

    // The numbers are in another order than C has them.
    [[nodiscard]] bool is_turned() const { return fortran_order && type.ndim > 1; }
    // They need only be copied.
    [[nodiscard]] bool is_as_in_memory() const { return !is_turned() && !swapped; }

    bool operator==(const NpyHeader&) const = default;
};

// The number of bytes before the numbers, as the first 12 bytes (or all that there are) say. Throws
// Error: FORMAT, UNSUPPORTED (version).
uint64_t npy_header_size(std::span<const uint8_t> start);
// Throws Error: FORMAT, UNSUPPORTED (objects, records, text, dates), LIMIT (too many dimensions).
NpyHeader parse_npy(std::span<const uint8_t> field);

// What a file of `size` bytes is that begins with `start`, which has the whole header. Throws
// Error: as parse_npy(), FORMAT when the size is not that of the array, LIMIT over `max_decoded`.
Measured measure_npy(std::span<const uint8_t> start, uint64_t size, uint64_t max_decoded);

std::unique_ptr<Decoder> npy_decoder(uint64_t max_decoded);
// The member called `member` or `member`.npy of an .npz, which is a ZIP file.
std::unique_ptr<Decoder> npz_decoder(std::string member, uint64_t max_decoded);

}  // namespace shf
