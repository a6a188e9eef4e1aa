// Arrays of which a field has the elements as they are in the memory of a little-endian machine.
#pragma once

#include "decode/decoder.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shf {

// Throws Error(LIMIT) for an array of more than max_decoded bytes.
void check_array_size(uint64_t bytes, uint64_t max_decoded);
// Turns the bytes of each word around; `bytes` are whole words.
void swap_words(std::span<uint8_t> bytes, size_t word);
// A byte that is neither 0 nor 1 is no bool to a C or C++ program.
void make_bools(std::span<uint8_t> bytes);

// Where an array is in its field.
struct StoredArray {
    ArrayType type;
    size_t begin = 0;  // type.bytes() from here on are in the field
};

class StoredArrayDecoder : public Decoder {
  public:
    explicit StoredArrayDecoder(uint64_t max_decoded) : max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field, uint64_t random) const final;
    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const final;

  protected:
    // The array that is wanted of a field. Throws Error as measure().
    [[nodiscard]] virtual StoredArray find(std::span<const uint8_t> field) const = 0;

  private:
    const uint64_t max_decoded_;
};

}  // namespace shf
