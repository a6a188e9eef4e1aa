// Fuzz target of the .npy reader, and of the .npz reader for files that begin like a ZIP: whatever
// is measured is decoded whole, and twice gives the same bytes.
#include "core/error.h"
#include "decode/npy.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    constexpr uint64_t max_decoded = 1 << 20;
    static shf::DecodeScratch scratch;
    const bool zip = size > 0 && data[0] == 'P';
    const auto decoder = zip ? shf::npz_decoder("a", max_decoded) : shf::npy_decoder(max_decoded);
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> file(data, data + size);
    try {
        const shf::ArrayType type = decoder->measure(file, 0).type;
        if (type.bytes() > max_decoded) std::abort();
        std::vector<uint8_t> first(type.bytes(), 0x55), second(type.bytes(), 0xaa);
        decoder->decode(file, 0, type, first, scratch);
        decoder->decode(file, 0, type, second, scratch);
        if (first != second) std::abort();
    } catch (const shf::Error& error) {
        const int32_t code = error.code();
        const bool of_a_zip =
            zip && (code == SHF_E_TRUNCATED || code == SHF_E_INTEGRITY || code == SHF_E_AMBIGUOUS);
        if (code != SHF_E_FORMAT && code != SHF_E_UNSUPPORTED && code != SHF_E_LIMIT && !of_a_zip)
            std::abort();
    }
    return 0;
}
