#include "decode/array.h"

#include "core/error.h"

namespace shf {

const DTypeTraits& traits_of(DType dtype) {
    // In the order of SHF_DTYPE_*. Arrow has its booleans in bits, so ours are bytes there.
    static constexpr DTypeTraits table[] = {
        {"bool", 1, 1, 'b', "C"},      {"int8", 1, 1, 'i', "c"},        {"int16", 2, 2, 'i', "s"},
        {"int32", 4, 4, 'i', "i"},     {"int64", 8, 8, 'i', "l"},       {"uint8", 1, 1, 'u', "C"},
        {"uint16", 2, 2, 'u', "S"},    {"uint32", 4, 4, 'u', "I"},      {"uint64", 8, 8, 'u', "L"},
        {"float16", 2, 2, 'f', "e"},   {"float32", 4, 4, 'f', "f"},     {"float64", 8, 8, 'f', "g"},
        {"complex64", 8, 4, 'c', "f"}, {"complex128", 16, 8, 'c', "g"},
    };
    return table[static_cast<size_t>(dtype)];
}

uint64_t ArrayType::elements() const {
    int64_t product = 1;
    // Zero first: a row without elements may have large dimensions beside it.
    for (const int64_t length : dimensions())
        if (length == 0) return 0;
    for (const int64_t length : dimensions())
        if (length < 0 || __builtin_mul_overflow(product, length, &product))
            throw Error(SHF_E_LIMIT, "an array of shape " + text() + " has too many elements");
    return static_cast<uint64_t>(product);
}

uint64_t ArrayType::bytes() const {
    int64_t product = 0;
    if (__builtin_mul_overflow(elements(), traits_of(dtype).size, &product))
        throw Error(SHF_E_LIMIT, "an array of shape " + text() + " has too many bytes");
    return static_cast<uint64_t>(product);
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
