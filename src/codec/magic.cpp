#include "codec/magic.h"

#include "codec/filter.h"
#include "core/little_endian.h"

#include <algorithm>
#include <initializer_list>

namespace shf {

namespace {

struct Range {
    uint8_t low, high;
};

struct Row {
    CodecMagic magic;
    size_t size;
    Range bytes[magic_size];
};

constexpr Range is(uint8_t byte) {
    return {byte, byte};
}
constexpr Range digit = {'1', '9'};

constexpr Row rows[] = {
    // RFC 1952, 2.3: ID1, ID2, and deflate, the only method ever defined.
    {{"gzip", false}, 3, {is(0x1f), is(0x8b), is(0x08)}},
    // Four printable bytes are too few to tell bzip2 from text: a block (pi) or the end of an empty
    // stream (square root of pi) must follow.
    {{"bzip2", false},
     10,
     {is('B'), is('Z'), is('h'), digit, is(0x31), is(0x41), is(0x59), is(0x26), is(0x53),
      is(0x59)}},
    {{"bzip2", false},
     10,
     {is('B'), is('Z'), is('h'), digit, is(0x17), is(0x72), is(0x45), is(0x38), is(0x50),
      is(0x90)}},
    // The .xz file format, 2.1.1.1
    {{"xz", false}, 6, {is(0xfd), is('7'), is('z'), is('X'), is('Z'), is(0x00)}},
    // RFC 8878, 3.1.1 and 3.1.2; then the formats of zstd 0.2 to 0.7.
    {{"zstd", false}, 4, {is(0x28), is(0xb5), is(0x2f), is(0xfd)}},
    {{"zstd", true}, 4, {{0x50, 0x5f}, is(0x2a), is(0x4d), is(0x18)}},
    {{"zstd", false}, 4, {{0x22, 0x27}, is(0xb5), is(0x2f), is(0xfd)}},
    // LZ4 frame format 1.6.x: frame and legacy frame.
    {{"lz4", false}, 4, {is(0x04), is(0x22), is(0x4d), is(0x18)}},
    {{"lz4", false}, 4, {is(0x02), is(0x21), is(0x4c), is(0x18)}},
    // The manual of lzip, "File format": the only version that is not obsolete.
    {{"lzip", false}, 5, {is('L'), is('Z'), is('I'), is('P'), is(0x01)}},
    // compress.c: the longest code, and bit 7 where tables may be cleared.
    {{"compress", false}, 3, {is(0x1f), is(0x9d), {0x09, 0x10}}},
    {{"compress", false}, 3, {is(0x1f), is(0x9d), {0x89, 0x90}}},
};

// Whether the bytes that `head` has agree with the row.
bool agrees(const Row& row, std::span<const uint8_t> head) {
    for (size_t i = 0; i < std::min(row.size, head.size()); ++i)
        if (head[i] < row.bytes[i].low || head[i] > row.bytes[i].high) return false;
    return true;
}

struct Suffix {
    std::string_view text;
    const char* codec;
};

constexpr Suffix suffixes[] = {
    {".gz", "gzip"},  {".tgz", "gzip"},   {".bz2", "bzip2"},    {".tbz2", "bzip2"}, {".xz", "xz"},
    {".txz", "xz"},   {".zst", "zstd"},   {".tzst", "zstd"},    {".lz4", "lz4"},    {".lz", "lzip"},
    {".tlz", "lzip"}, {".Z", "compress"}, {".taZ", "compress"},
};

}  // namespace

const CodecMagic* find_magic(std::span<const uint8_t> head) {
    for (const Row& row : rows)
        if (head.size() >= row.size && agrees(row, head)) return &row.magic;
    return nullptr;
}

bool cut_magic(std::span<const uint8_t> head, std::string_view codec) {
    const bool pair = codec == "zstd" || codec == "lz4";
    return !head.empty() && std::any_of(std::begin(rows), std::end(rows), [&](const Row& row) {
        const bool wanted =
            codec.empty() || codec == row.magic.codec || (row.magic.skippable && pair);
        return wanted && head.size() < row.size && agrees(row, head);
    });
}

const char* codec_of_magic(std::span<const uint8_t> head) {
    if (const CodecMagic* magic = find_magic(head)) return magic->codec;
    return head.size() >= 4 && cut_magic(head, "bzip2") ? "bzip2" : nullptr;
}

bool has_zip_magic(std::span<const uint8_t> head) {
    if (head.size() < 4) return false;
    const uint32_t magic = le32(head.data());
    // A local header, an empty archive, an empty one with ZIP64 records, a part of several.
    return magic == 0x04034b50 || magic == 0x06054b50 || magic == 0x06064b50 || magic == 0x08074b50;
}

bool is_slow_codec(std::string_view codec) {
    return codec != "zstd" && codec != "lz4";
}

const char* codec_of_suffix(std::string_view name) {
    for (const Suffix& suffix : suffixes)
        if (name.ends_with(suffix.text)) return suffix.codec;
    return nullptr;
}

}  // namespace shf
