// What the first bytes of a file, or the end of its name, say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shf {

// The codec whose magic `head` (at least 6 bytes, or the whole input) starts with, or NULL.
const char* codec_of_magic(std::span<const uint8_t> head);

// The codec of a file name's suffix (.gz, .tgz, .bz2, .tbz2, .xz, .txz, .zst, .tzst, .lz4, .lz,
// .tlz, .Z, .taZ), or NULL.
const char* codec_of_suffix(std::string_view name);

// Whether these are the first bytes of a ZIP file without data before it: APPNOTE 4.3.7, 4.3.14,
// 4.3.16 and 8.5.3.
bool has_zip_magic(std::span<const uint8_t> head);

// ---- For filters --------------------------------------------------------------------------------

struct CodecMagic {
    const char* codec;
    bool skippable;  // a zstd or lz4 frame without content; both codecs have the same (RFC
                     // 8878, 3.1.2)
};

// The magic that `head` starts with, or NULL.
const CodecMagic* find_magic(std::span<const uint8_t> head);

// Whether all of `head` is the start of a magic, but not a whole one: of `codec` or, with an empty
// name, of any codec.
bool cut_magic(std::span<const uint8_t> head, std::string_view codec);

// Longest magic: bzip2 stream header and block magic.
inline constexpr size_t magic_size = 10;

}  // namespace shf
