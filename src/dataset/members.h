// The members of one archive, by position.
#pragma once

#include "core/error.h"
#include "core/member.h"
#include "dataset/name_table.h"
#include "io/source.h"
#include "zip/zip_entry.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace shf {

struct Options;

struct MemberInfo {
    uint64_t size;
    uint64_t stored_size;  // in the file
    uint64_t method;       // the number ZIP has for it; 0: stored
    uint64_t crc;          // UINT64_MAX: the format has none
    // Of the first header that belongs to it, in the (decompressed) file; in what libarchive reads
    // the number of the member.
    uint64_t offset;
    MemberKind kind;
};

// Does not change after it was made: any number of threads, and forked children too.
class Members : public Names {
  public:
    [[nodiscard]] virtual MemberInfo info(size_t position) const = 0;
    // Throws Error, with member and offset, unless what is known of the member allows to read it:
    // its kind, and its size under the limits. Reads nothing.
    virtual void check(size_t position) const = 0;
    // Fills `out`, which has the member's size. Throws Error with member and offset.
    virtual void read(size_t position, std::span<uint8_t> out, ZipScratch& scratch) const = 0;
    // The bytes themselves when the file is in memory. Throws Error; UNSUPPORTED when they are not.
    [[nodiscard]] virtual std::span<const uint8_t> view(size_t position) const = 0;
};

// Returns `memory`, the bytes of an archive. Throws Error(UNSUPPORTED) when the archive is not in
// memory.
inline std::span<const uint8_t> in_memory(std::span<const uint8_t> memory) {
    if (memory.data()) return memory;
    throw Error(SHF_E_UNSUPPORTED, "the bytes of this archive are not in memory", "read them");
}

// Lists the members of a file of known size that can be read at any offset. `memory` is the whole
// file where it is in memory, else empty. The references, and `memory`, must outlive the result.
// Throws Error.
std::unique_ptr<Members> zip_members(Source& source, std::span<const uint8_t> memory,
                                     const Options& options);
std::unique_ptr<Members> tar_members(Source& source, std::span<const uint8_t> memory,
                                     const Options& options, const Cancel& cancel);
std::unique_ptr<Members> libarchive_members(Source& source, const Options& options,
                                            const Cancel& cancel);

}  // namespace shf
