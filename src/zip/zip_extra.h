// The extra fields of ZIP headers, central and local (APPNOTE 4.5 and 4.6.9).
#pragma once

#include "zip/zip_directory.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shf {

// The fields of a header that ZIP64 may replace, as the header has them.
struct ZipSizes {
    uint64_t size, stored_size, offset, disk;

    // Whether some field is all ones: its value is in the ZIP64 extra field.
    [[nodiscard]] bool has_sentinel() const {
        return size == UINT32_MAX || stored_size == UINT32_MAX || offset == UINT32_MAX ||
               disk == UINT16_MAX;
    }
};

enum class ZipHeader : uint8_t { central, local };

// Reads the extra fields of a header. 64-bit values go to `sizes`. A local header has only the two
// sizes, and its Unicode path field means nothing: names are those of the directory.
ZipFault read_zip_extra(std::span<const uint8_t> extra, std::string_view name, ZipSizes& sizes,
                        ZipHeader header = ZipHeader::central);

// What a local header says of owner and time.
struct ZipMetadata {
    std::optional<uint64_t> uid, gid;
    // Nanoseconds since 1970. From the Unix field where there is one; else DOS time, which has no
    // zone and is taken for UTC, in steps of two seconds.
    std::optional<int64_t> mtime;
};

// `header` is a whole local header, whose extra fields read_zip_extra() has accepted.
ZipMetadata read_zip_metadata(std::span<const uint8_t> header);

}  // namespace shf
