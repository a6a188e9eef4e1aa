// Fuzz target of TenBin: whatever is measured is decoded whole, twice gives the same bytes, and a
// field with one array is the same with its number and without.
#include "core/error.h"
#include "decode/ten.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

constexpr uint64_t max_decoded = 1 << 20;

// The array, or nothing.
std::optional<std::vector<uint8_t>> decoded(const std::vector<uint8_t>& field,
                                            std::optional<uint64_t> part, uint8_t filling) {
    static shf::DecodeScratch scratch;
    const auto decoder = shf::ten_decoder(part, max_decoded);
    try {
        const shf::ArrayType type = decoder->measure(field, 0).type;
        if (type.bytes() > max_decoded || type.bytes() > field.size()) std::abort();
        std::vector<uint8_t> out(static_cast<size_t>(type.bytes()), filling);
        decoder->decode(field, 0, type, out, scratch);
        return out;
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_UNSUPPORTED &&
            error.code() != SHF_E_LIMIT)
            std::abort();
        return std::nullopt;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> field(data, data + size);
    const auto first = decoded(field, 0, 0x55), again = decoded(field, 0, 0xaa);
    if (first != again) std::abort();
    const auto only = decoded(field, std::nullopt, 0x55), second = decoded(field, 1, 0x55);
    if (only && (only != first || second)) std::abort();
    return 0;
}
