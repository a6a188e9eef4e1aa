// An ArrayType says how the numbers of one decoded field lie: C order, without gaps.
#pragma once

#include <shardfeed.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// Values of SHF_DTYPE_*, part of the ABI.
enum class DType : int32_t {
    bool8 = SHF_DTYPE_BOOL,
    i8 = SHF_DTYPE_INT8,
    i16 = SHF_DTYPE_INT16,
    i32 = SHF_DTYPE_INT32,
    i64 = SHF_DTYPE_INT64,
    u8 = SHF_DTYPE_UINT8,
    u16 = SHF_DTYPE_UINT16,
    u32 = SHF_DTYPE_UINT32,
    u64 = SHF_DTYPE_UINT64,
    f16 = SHF_DTYPE_FLOAT16,
    f32 = SHF_DTYPE_FLOAT32,
    f64 = SHF_DTYPE_FLOAT64,
    c64 = SHF_DTYPE_COMPLEX64,
    c128 = SHF_DTYPE_COMPLEX128,
    bf16 = SHF_DTYPE_BFLOAT16,
};

struct DTypeTraits {
    std::string_view name;   // as numpy has it: "float32"
    size_t size;             // bytes of an element
    size_t word;             // bytes that change places with the byte order
    char kind;               // of numpy: b i u f c; B: bfloat16, which numpy does not have
    std::string_view arrow;  // format of the Arrow C data interface; of a word for complex numbers
};
const DTypeTraits& traits_of(DType dtype);

// The most dimensions of a row: shf_array has eight, and the rows are one of them.
inline constexpr size_t max_row_dimensions = 7;

struct ArrayType {
    DType dtype = DType::u8;
    int32_t ndim = 0;  // 0: one number
    std::array<int64_t, max_row_dimensions> shape{};

    bool operator==(const ArrayType&) const = default;
    [[nodiscard]] std::span<const int64_t> dimensions() const {
        return std::span(shape).first(static_cast<size_t>(ndim));
    }
    // Both throw Error(LIMIT) when the bytes are no number of 63 bits.
    [[nodiscard]] uint64_t elements() const;
    [[nodiscard]] uint64_t bytes() const;
    [[nodiscard]] std::string text() const;  // "float32 (64, 64)"
};

}  // namespace shf
