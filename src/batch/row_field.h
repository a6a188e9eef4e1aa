// Samples that another process has decoded: Schema::of_rows says that the fields stand for columns
// of the option "decode" (row_field_of). Those of bytes are as they are, unpacked; the others are
// arrays with their type in front:
//
//     byte 0      dtype (SHF_DTYPE_*)
//     byte 1      dimensions
//     bytes 2-7   0
//     8 bytes for each dimension, then the elements in C order. Little endian.
//
// A sample that could not be decoded has one field, with the fault (core/fault_encoding.h).
#pragma once

#include "core/array.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace shf {

// Bytes in front of the elements.
inline uint64_t row_header_size(const ArrayType& type) {
    return 8 + 8 * static_cast<uint64_t>(type.ndim);
}
// Writes them.
void write_row_header(const ArrayType& type, uint8_t* out);

// The name of the field of a sample that could not be decoded.
inline constexpr std::string_view fault_field = "__fault__";

// The type of the array that follows. Throws Error(FORMAT).
ArrayType row_type(std::span<const uint8_t> field);
// Its elements. `field` passed row_type().
inline std::span<const uint8_t> row_elements(std::span<const uint8_t> field) {
    return field.subspan(8 + 8 * size_t{field[1]});
}

}  // namespace shf
