// What fuzz targets of decoders do with a file.
#pragma once

#include "core/error.h"
#include "decode/decoder.h"

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

// Whatever is measured is decoded, has a record, and twice gives the same bytes: a byte that one
// decoding leaves out keeps what was there, and the two differ. Aborts when not, for more than
// max_decoded bytes, and for an error that is neither FORMAT, UNSUPPORTED nor LIMIT.
inline void decode_twice(const shf::Decoder& decoder, std::span<const uint8_t> data,
                         uint64_t random, uint64_t max_decoded) {
    static shf::DecodeScratch scratch;
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> file(data.begin(), data.end());
    try {
        const shf::ArrayType type = decoder.measure(file, random).type;
        if (type.bytes() == 0 || type.bytes() > max_decoded) std::abort();
        std::vector<uint8_t> first(type.bytes(), 0x55), second(type.bytes(), 0xaa);
        decoder.decode(file, random, type, first, scratch);
        decoder.decode(file, random, type, second, scratch);
        if (first != second) std::abort();
        if (decoder.record(file, random).empty()) std::abort();
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_UNSUPPORTED &&
            error.code() != SHF_E_LIMIT)
            std::abort();
    }
}
