#include "batch/row_field.h"

#include "core/error.h"
#include "core/little_endian.h"

#include <cstring>

namespace shf {

namespace {

[[noreturn]] void throw_no_row(const char* what) {
    throw Error(SHF_E_FORMAT, std::string("a decoded field ") + what,
                "feed with the version of shardfeed that reads");
}

}  // namespace

void write_row_header(const ArrayType& type, uint8_t* out) {
    std::memset(out, 0, 8);
    out[0] = static_cast<uint8_t>(type.dtype);
    out[1] = static_cast<uint8_t>(type.ndim);
    std::memcpy(out + 8, type.shape.data(), type.dimensions().size_bytes());
}

ArrayType row_type(std::span<const uint8_t> field) {
    if (field.size() < 8) throw_no_row("is cut");
    ArrayType type;
    if (field[0] > static_cast<uint8_t>(DType::bf16) || field[1] > max_row_dimensions)
        throw_no_row("has an unknown type");
    type.dtype = static_cast<DType>(field[0]);
    type.ndim = field[1];
    if (field.size() < row_header_size(type)) throw_no_row("is cut");
    for (size_t i = 0; i < static_cast<size_t>(type.ndim); ++i) {
        type.shape[i] = static_cast<int64_t>(le64(field.data() + 8 + 8 * i));
        if (type.shape[i] < 0) throw_no_row("has a negative length");
    }
    if (field.size() - row_header_size(type) != type.bytes()) throw_no_row("has another size");
    return type;
}

}  // namespace shf
