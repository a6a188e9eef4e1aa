#include "decode/stored_array.h"

#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace shf {

void check_array_size(uint64_t bytes, uint64_t max_decoded) {
    if (bytes > max_decoded)
        throw Error(SHF_E_LIMIT,
                    "an array of " + plural(bytes, "byte") +
                        " is larger than max_decoded=" + std::to_string(max_decoded),
                    "raise max_decoded");
}

void swap_words(std::span<uint8_t> bytes, size_t word) {
    for (size_t at = 0; at < bytes.size(); at += word)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + word));
}

void make_bools(std::span<uint8_t> bytes) {
    for (uint8_t& value : bytes) value = value != 0;
}

Measured StoredArrayDecoder::measure(std::span<const uint8_t> field, uint64_t /*random*/) const {
    const ArrayType type = find(field).type;
    check_array_size(type.bytes(), max_decoded_);
    return {.type = type, .cheap = true};
}

void StoredArrayDecoder::decode(std::span<const uint8_t> field, uint64_t /*random*/,
                                const ArrayType& type, std::span<uint8_t> out,
                                DecodeScratch& /*scratch*/) const {
    const StoredArray array = find(field);
    // Bytes of a mapped file are what the file has now.
    if (array.type != type)
        throw Error(SHF_E_FORMAT, "the field changed while it was read",
                    "let no program write to shards that are in use");
    if (out.empty()) return;
    std::memcpy(out.data(), field.data() + array.begin, out.size());
    if constexpr (std::endian::native == std::endian::big)
        swap_words(out, traits_of(type.dtype).word);
    if (type.dtype == DType::bool8) make_bools(out);
}

}  // namespace shf
