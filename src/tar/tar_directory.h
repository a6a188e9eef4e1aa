// The members of a tar that can be read at any offset: where each lies, as zip/zip_directory.h has
// it of ZIP, and the reading of their data.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/member.h"
#include "io/source.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct Options;

struct TarEntry {
    uint64_t offset;       // of the first header that belongs to it
    uint64_t data_offset;  // in the file
    uint64_t size;
    uint64_t name_at;  // in the names of the directory
    uint32_t name_size;
    MemberKind kind;
};

class TarDirectory {
  public:
    // Reads all headers of `source`, a tar that is not compressed. Throws Error as TarWalker.
    TarDirectory(Source& source, const Options& options, const Cancel& cancel);

    [[nodiscard]] size_t size() const { return entries_.size(); }
    // In the order of the file.
    [[nodiscard]] const TarEntry& entry(size_t index) const { return entries_[index]; }
    [[nodiscard]] std::string_view name(size_t index) const {
        const TarEntry& entry = entries_[index];
        return std::string_view(names_).substr(static_cast<size_t>(entry.name_at), entry.name_size);
    }

  private:
    std::vector<TarEntry> entries_;
    std::string names_;
};

// Reads members of one tar. Any number of threads; nothing here changes, so a child process may use
// it.
class TarReader {
  public:
    // The references must outlive the reader.
    TarReader(Source& source, const TarDirectory& directory, const Options& options,
              const Cancel& cancel)
        : source_(source), directory_(directory), options_(options), cancel_(cancel) {}

    // Throws Error unless the kind and the size of the member allow to read it. Reads nothing.
    void check(size_t index) const;
    // Fills `out`, which has the member's size. Throws Error with member and offset; CHANGED when
    // the file was touched and the member's headers are no longer what they were.
    void read(size_t index, std::span<uint8_t> out) const;
    // The bytes of a member that check() accepts, in `file`, which is the whole file in memory.
    // Throws as read().
    [[nodiscard]] std::span<const uint8_t> view(size_t index, std::span<const uint8_t> file) const;

  private:
    void check_header(size_t index) const;
    [[noreturn]] void throw_named(size_t index, Fault fault) const;

    Source& source_;
    const TarDirectory& directory_;
    const Options& options_;
    const Cancel& cancel_;
};

}  // namespace shf
