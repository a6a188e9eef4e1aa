// Fuzz target of compressed fields: the first byte chooses the codec and how much may come out.
// What comes out is the same with a decoder and memory that are used again, and never more than
// that.
#include "core/error.h"
#include "decode/field_unpacker.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    static shf::UnpackScratch kept;
    const auto codec = (data[0] & 1) != 0 ? shf::FieldCodec::zstd : shf::FieldCodec::gzip;
    const shf::UnpackLimits limits((data[0] & 2) != 0 ? 1 << 20 : 100, 1 << 20);
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> field(data + 1, data + size);
    try {
        shf::UnpackScratch fresh;
        const auto first = fresh.unpacker.unpack(codec, field, limits, fresh.field);
        const auto again = kept.unpacker.unpack(codec, field, limits, kept.field);
        if (first.size() > limits.bytes ||
            !std::equal(first.begin(), first.end(), again.begin(), again.end()))
            std::abort();
    } catch (const shf::Error& error) {
        switch (error.code()) {
            case SHF_E_FORMAT:
            case SHF_E_TRUNCATED:
            case SHF_E_INTEGRITY:
            case SHF_E_LIMIT:
            case SHF_E_UNSUPPORTED: break;
            default: std::abort();
        }
    }
    return 0;
}
