// Fuzz target of lists of numbers in JSON: what is measured is decoded whole, and is what another
// reader of JSON finds.
#include "core/error.h"
#include "decode/number_list.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    constexpr uint64_t max_decoded = 1 << 20;
    static shf::DecodeScratch scratch;
    const bool is_member = size > 0 && data[0] == '{';
    const auto decoder = shf::list_decoder(is_member ? "a" : "", max_decoded);
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> field(data, data + size);
    auto other = nlohmann::json::parse(field.begin(), field.end(), nullptr, false);
    if (is_member && other.is_object()) other = other.value("a", nlohmann::json());
    bool sound = other.is_array();
    for (size_t i = 0; sound && i < other.size(); ++i)
        sound = other[i].is_number_integer() &&
                !(other[i].is_number_unsigned() && other[i].get<uint64_t>() > INT64_MAX);
    try {
        const shf::ArrayType type = decoder->measure(field, 0).type;
        if (type.ndim != 1 || type.bytes() > max_decoded) std::abort();
        std::vector<uint8_t> numbers(static_cast<size_t>(type.bytes()), 0x55);
        decoder->decode(field, 0, type, numbers, scratch);
        // Of an object the other one reads also what is not wanted.
        if (!sound) return is_member ? 0 : (std::abort(), 0);
        if (other.size() != type.elements()) std::abort();
        for (size_t i = 0; i < other.size(); ++i) {
            const auto number = other[i].get<int64_t>();
            if (std::memcmp(&number, numbers.data() + i * sizeof number, sizeof number) != 0)
                std::abort();
        }
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_LIMIT) std::abort();
        // The other one skips the mark that some editors write at the start.
        const bool marked = size > 0 && data[0] == 0xef;
        if (sound && !marked && error.code() == SHF_E_FORMAT) std::abort();
    }
    return 0;
}
