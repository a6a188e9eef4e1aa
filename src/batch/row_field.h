// Fields that another process has decoded: the array with its type in front, or why it is none. In
// samples whose Schema says so they stand for the columns of the option "decode".
//
//     byte 0      0: an array, 1: a fault
//     byte 1      dtype (SHF_DTYPE_*), 0 of a fault
//     byte 2      dimensions
//     bytes 3-7   0
//     8 bytes for each dimension, then the elements in C order; or the fault. Little endian.
#pragma once

#include "core/array.h"
#include "core/error.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shf {

// Bytes in front of the elements.
inline uint64_t row_header_size(const ArrayType& type) {
    return 8 + 8 * static_cast<uint64_t>(type.ndim);
}
// Writes them.
void write_row_header(const ArrayType& type, uint8_t* out);

// A field that could not be decoded.
std::vector<uint8_t> fault_field(const Fault& fault);

// The type of the array that follows. Throws the Error that is there instead, and Error(FORMAT).
ArrayType row_type(std::span<const uint8_t> field);
// Its elements. `field` passed row_type().
inline std::span<const uint8_t> row_elements(std::span<const uint8_t> field) {
    return field.subspan(8 + 8 * size_t{field[2]});
}

}  // namespace shf
