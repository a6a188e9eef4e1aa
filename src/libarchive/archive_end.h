// What the own headers of an archive prove, read before libarchive reads it: libarchive takes some
// archives that are cut for whole ones, looks at nothing behind an end, and (version 3.6) compares
// no CRC of a stored member of RAR 4.
#pragma once

#include "codec/other_archive.h"
#include "core/cancel.h"
#include "io/source.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shf {

inline constexpr uint64_t no_crc = UINT64_MAX;

struct ArchiveEnd {
    std::optional<uint64_t> end;  // of the archive; nothing: not known before it is read
    // Of each member its CRC, or no_crc; nothing: that is not known before it is read.
    std::optional<std::vector<uint64_t>> crcs;
};

// Reads the start of a 7z archive and of an image, all headers of a RAR archive, and nothing of a
// cpio archive. Throws Error: TRUNCATED when the file ends before the archive does, FORMAT,
// INTEGRITY, UNSUPPORTED for a volume of several and for encrypted headers, and what reading
// throws.
ArchiveEnd find_archive_end(Source& source, OtherArchive format, const Cancel& cancel);

}  // namespace shf
