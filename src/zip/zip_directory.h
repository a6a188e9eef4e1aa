// The directory of a ZIP file, from its end record and central directory; local headers are looked
// at when an entry is read (zip_entry.h). Strict: what conforming readers could understand in two
// ways is an error of the entry or of the file (rules Z1 to Z22). Source of the rules: PKWARE
// APPNOTE.TXT 6.3.10, section 4.
#pragma once

#include "core/error.h"
#include "core/member.h"
#include "io/source.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// Bytes of a local header (APPNOTE 4.3.7) before its name.
inline constexpr size_t zip_local_size = 30;
// What an entry of the central directory starts with (APPNOTE 4.3.12).
inline constexpr uint32_t zip_central_magic = 0x02014b50;

// APPNOTE 4.4.5: the methods that are read.
namespace zip_method {
inline constexpr uint16_t stored = 0, deflated = 8, bzip2 = 12, lzma = 14, zstd = 93, xz = 95;
}

struct Options;

// Why an entry cannot be read although the directory as a whole can be trusted.
enum class ZipFault : uint8_t {
    none,
    overlap,  // its range reaches into the next entry or into the directory
    nul_in_name,
    extra_field,      // runs over its area
    zip64_missing,    // a sentinel without its 64-bit value
    zip64_twice,      // two ZIP64 extra fields
    zip64_disagrees,  // two values for one field
    too_large,        // a value above 2^63, or a sum that overflows
    sizes_differ,     // stored, with two sizes
    directory_data,   // a directory with bytes
    unicode_name,     // the extra field 0x7075 gives another name
    ratio,            // a size that the method cannot reach
    encrypted,
    patched,
    version,
    method,
    other_disk,
};

struct ZipEntry {
    uint64_t offset;       // of its local header in the file
    uint64_t limit;        // where the next entry starts, or the directory; see find_limits
    uint64_t stored_size;  // in the file
    uint64_t size;
    uint64_t name_at;  // in the names of the directory
    uint32_t crc;
    uint16_t name_size;
    uint16_t method;
    uint16_t flags;
    uint16_t mode;    // of Unix, with the bits of the kind; 0: not known
    uint8_t version;  // needed to extract, times ten
    MemberKind kind;
    ZipFault fault;
};

// What the entry itself says against reading it.
ZipFault fault_in(const ZipEntry& entry, std::string_view name, const Options& options);

class ZipDirectory {
  public:
    // Reads the directory of `source`, which must be seekable and of known size. Throws Error when
    // it cannot be trusted as a whole: FORMAT, TRUNCATED, AMBIGUOUS, UNSUPPORTED, LIMIT.
    ZipDirectory(Source& source, const Options& options);
    // The entries of a file whose directory is lost, as their local headers say, from the start of
    // the file on: each header must follow the data of the one before, and have its sizes (flag bit
    // 3 is clear). `broken_at` is set where that ends, unless it is at a directory. Nothing is
    // searched for: an archive within an archive would be found. Throws Error(LIMIT), and what
    // reading throws.
    static ZipDirectory of_local_headers(Source& source, const Options& options,
                                         std::optional<uint64_t>& broken_at);

    [[nodiscard]] size_t size() const { return entries_.size(); }
    // Bytes of all names together.
    [[nodiscard]] uint64_t names_size() const { return names_.size(); }
    // In the order of the directory.
    [[nodiscard]] const ZipEntry& entry(size_t index) const { return entries_[index]; }
    [[nodiscard]] std::string_view name(size_t index) const {
        const ZipEntry& entry = entries_[index];
        return std::string_view(names_).substr(static_cast<size_t>(entry.name_at), entry.name_size);
    }
    // The entries lie in the file in the order of the directory.
    [[nodiscard]] bool sorted() const { return sorted_; }
    // The numbers of all entries in the order of their offsets in the file.
    [[nodiscard]] std::vector<uint32_t> by_offset() const;
    // The error of an entry whose `fault` is set.
    [[nodiscard]] Error fault_of(size_t index) const;

  private:
    ZipDirectory() = default;
    uint64_t take_local_header(std::span<const uint8_t> header, uint64_t at,
                               const Options& options);
    size_t parse_entry(std::span<const uint8_t> bytes, uint64_t at, uint64_t base,
                       const Options& options);
    void find_limits(uint64_t directory, uint64_t file_size, const Options& options);

    std::vector<ZipEntry> entries_;
    std::string names_;
    bool sorted_ = true;  // the entries lie in the file in the order of the directory
};

// Where the directory of a ZIP file lies. For ZipDirectory.
struct ZipEnd {
    uint64_t directory;       // offset in the file
    uint64_t directory_size;  // bytes
    uint64_t entries;         // as the end record has it
    uint64_t base;            // of the offsets in the directory: the length of data before the ZIP
};
ZipEnd find_zip_end(Source& source, uint64_t size, const Options& options);

}  // namespace shf
