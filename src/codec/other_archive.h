// Archives that are no tar and no ZIP file, by their first bytes. libarchive reads them.
#pragma once

#include "io/source.h"

#include <cstdint>
#include <span>

namespace shf {

enum class OtherArchive : uint8_t { none, seven_zip, cpio, rar4, rar5, iso9660 };

// What `head`, the first 512 bytes of a shard or all that it has, is the start of. ISO 9660 shows
// only later.
OtherArchive other_archive(std::span<const uint8_t> head);
// The same of a source that can seek, ISO 9660 too. Throws what reading throws.
OtherArchive other_archive(Source& source);

// "a 7z archive"; static text. Not of `none`.
const char* words_for(OtherArchive format);

// Where an image of ISO 9660 has its first volume descriptor (ECMA-119, 6.2.1 and 8.4): behind the
// system area, which has any bytes.
inline constexpr uint64_t iso_descriptor_at = 32768;

}  // namespace shf
