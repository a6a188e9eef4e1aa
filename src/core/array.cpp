#include "core/array.h"

#include "core/error.h"

#include <algorithm>

namespace shf {

const DTypeTraits& traits_of(DType dtype) {
    // In the order of SHF_DTYPE_*. Arrow has its booleans in bits, so ours are
    // bytes there, and no bfloat16: its bits are.
    static constexpr DTypeTraits table[] = {
        {"bool", 1, 1, 'b', "C"},      {"int8", 1, 1, 'i', "c"},
        {"int16", 2, 2, 'i', "s"},     {"int32", 4, 4, 'i', "i"},
        {"int64", 8, 8, 'i', "l"},     {"uint8", 1, 1, 'u', "C"},
        {"uint16", 2, 2, 'u', "S"},    {"uint32", 4, 4, 'u', "I"},
        {"uint64", 8, 8, 'u', "L"},    {"float16", 2, 2, 'f', "e"},
        {"float32", 4, 4, 'f', "f"},   {"float64", 8, 8, 'f', "g"},
        {"complex64", 8, 4, 'c', "f"}, {"complex128", 16, 8, 'c', "g"},
        {"bfloat16", 2, 2, 'B', "S"},
    };
    return table[static_cast<size_t>(dtype)];
}

uint64_t ArrayType::elements() const {
    // Strides are products of some lengths, so an array without elements must have sound ones too.
    int64_t product = 1;
    bool empty = false;
    for (const int64_t length : dimensions()) {
        empty = empty || length == 0;
        if (length < 0 || __builtin_mul_overflow(product, std::max<int64_t>(length, 1), &product) ||
            product > INT64_MAX / 16)
            throw Error(SHF_E_LIMIT, "an array of shape " + text() + " has too many elements",
                        "take the field as bytes");
    }
    return empty ? 0 : static_cast<uint64_t>(product);
}

uint64_t ArrayType::bytes() const {
    return elements() * traits_of(dtype).size;  // of 16 bytes at most
}

std::string ArrayType::text() const {
    std::string out(traits_of(dtype).name);
    out += " (";
    for (const int64_t length : dimensions()) {
        if (!out.ends_with('(')) out += ", ";
        out += std::to_string(length);
    }
    out += ndim == 1 ? ",)" : ")";
    return out;
}

}  // namespace shf
