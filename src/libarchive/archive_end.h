// Where an archive ends, as its own headers say, before libarchive reads it: libarchive takes some
// archives that are cut for whole ones, and looks at nothing behind an end.
#pragma once

#include "codec/other_archive.h"
#include "core/cancel.h"
#include "io/source.h"

#include <cstdint>
#include <optional>

namespace shf {

struct ArchiveEnd {
    std::optional<uint64_t> end;    // the byte behind the archive; nothing: only reading tells
    std::optional<uint64_t> files;  // how many members it has; nothing: it does not say
};

// Reads the start of a 7z archive and of an image, all headers of a RAR archive, and nothing of a
// cpio archive. Throws Error: TRUNCATED when the file ends before the archive does, FORMAT,
// INTEGRITY, UNSUPPORTED for a volume of several and for encrypted headers, and what reading
// throws.
ArchiveEnd find_archive_end(Source& source, OtherArchive format, const Cancel& cancel);

}  // namespace shf
