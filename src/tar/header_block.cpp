#include "tar/header_block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace shf {

namespace header_block {

namespace {

// Sum of the header bytes, the checksum field taken as blanks.
uint32_t header_sum(const uint8_t* block) {
    uint32_t sum = checksum_size * ' ';
#ifdef __SSE2__
    // Every header of every shard passes here: 16 bytes a step, summed by the instruction for it.
    const __m128i zero = _mm_setzero_si128();
    const auto sums_at = [&](size_t i) {
        return _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i)), zero);
    };
    __m128i sums = zero, more = zero;
    for (size_t i = 0; i < block_size; i += 4 * sizeof sums) {
        sums = _mm_add_epi64(sums, _mm_add_epi64(sums_at(i), sums_at(i + 16)));
        more = _mm_add_epi64(more, _mm_add_epi64(sums_at(i + 32), sums_at(i + 48)));
    }
    sums = _mm_add_epi64(sums, more);
    sum += static_cast<uint32_t>(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4));
    static_assert(checksum_size == 8);
    const auto* field = reinterpret_cast<const __m128i*>(block + checksum_at);
    sum -= static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_sad_epu8(_mm_loadl_epi64(field), zero)));
#else
    for (size_t i = 0; i < block_size; ++i) sum += block[i];
    for (size_t i = checksum_at; i < checksum_at + checksum_size; ++i) sum -= block[i];
#endif
    return sum;
}

// The same over signed bytes, as old writers summed them: bytes from 0x80 on count 256 less.
uint32_t signed_header_sum(const uint8_t* block) {
    uint32_t sum = header_sum(block);
    for (size_t i = 0; i < block_size; ++i)
        if (i < checksum_at || i >= checksum_at + checksum_size) sum -= (block[i] >> 7) * 256u;
    return sum;
}

}  // namespace

bool is_zero(const uint8_t* block) {
    return block[0] == 0 && std::memcmp(block, block + 1, block_size - 1) == 0;
}

bool checksum_holds(const uint8_t* block) {
    const auto stored = parse_number(field(block, checksum_at, checksum_size));
    return stored && (*stored == header_sum(block) || *stored == signed_header_sum(block));
}

}  // namespace header_block

using namespace header_block;

std::optional<uint64_t> parse_number(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) & 0x80) {
        // Base-256 (GNU tar manual, "Basic Tar Format"): 0x80 and a big-endian number. 0xff starts
        // a negative one. Anything between would be more than 64 bits or not canonical.
        if (byte(0) != 0x80) return std::nullopt;
        uint64_t value = 0;
        for (size_t i = 1; i < text.size(); ++i) {
            if (value >> 55) return std::nullopt;
            value = value << 8 | byte(i);
        }
        return value;
    }
    size_t i = 0, digits = 0;
    uint64_t value = 0;
    if (uint64_t eight; std::endian::native == std::endian::little && text.size() >= sizeof eight) {
        // Writers fill the field with digits: eight of them at once, joined two by two.
        std::memcpy(&eight, text.data(), sizeof eight);
        // Six digits, NUL and a blank, as most checksums are: moved to the end, behind zeros.
        if (text.size() == sizeof eight && eight >> 48 == 0x2000) eight = eight << 16 | 0x3030;
        if ((eight & 0xf8f8f8f8f8f8f8f8) == 0x3030303030303030) {
            eight &= 0x0707070707070707;
            eight = (eight << 3 | eight >> 8) & 0x003f003f003f003f;
            eight = (eight << 6 | eight >> 16) & 0x00000fff00000fff;
            value = (eight << 12 | eight >> 32) & 0xffffff;
            i = digits = sizeof eight;
            // Three more and NUL or a blank, as most sizes end.
            uint32_t four;
            if (text.size() == sizeof eight + sizeof four) {
                std::memcpy(&four, text.data() + sizeof eight, sizeof four);
                if ((four & 0xdff8f8f8) == 0x00303030)
                    return value << 9 | (four & 7) << 6 | (four >> 8 & 7) << 3 | (four >> 16 & 7);
            }
        }
    }
    if (i == 0)
        while (i < text.size() && text[i] == ' ') ++i;
    const bool all_blank = i == text.size();
    for (; i < text.size() && text[i] >= '0' && text[i] <= '7'; ++i, ++digits)
        value = value << 3 | static_cast<uint64_t>(text[i] - '0');  // 12 digits at most: fits
    // Without a digit the whole field must be blanks, or NULs.
    if (digits == 0 && i > 0) return all_blank ? std::optional(value) : std::nullopt;
    for (; i < text.size(); ++i)
        if (text[i] != '\0' && (text[i] != ' ' || digits == 0)) return std::nullopt;
    return value;
}

std::optional<PlainHeader> parse_plain_header(const uint8_t* block) {
    const char type = static_cast<char>(block[type_at]);
    const auto size = parse_number(field(block, size_at, size_size));
    if ((type != '0' && type != '\0' && type != '7') || !size || !checksum_holds(block))
        return std::nullopt;
    PlainHeader header;
    header.size = *size;
    header.name_size = 0;
    const auto append = [&header](std::string_view part) {
        std::copy(part.begin(), part.end(), header.text.data() + header.name_size);
        header.name_size += part.size();
    };
    if (field(block, magic_at, 6) == std::string_view("ustar\0", 6) && block[prefix_at] != 0) {
        append(until_nul(field(block, prefix_at, prefix_size)));
        append("/");
    }
    append(until_nul(field(block, name_at, name_size)));
    return header;
}

}  // namespace shf
