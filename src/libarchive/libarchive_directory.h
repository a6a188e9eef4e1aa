// The members of an archive that only libarchive reads, as zip/zip_directory.h has them of a ZIP
// file, and the reading of their data by number.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/member.h"
#include "io/source.h"
#include "libarchive/libarchive_reader.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct Options;

struct LibarchiveEntry {
    uint64_t size;
    uint64_t crc;      // UINT64_MAX: not known
    uint64_t name_at;  // in the names of the directory
    uint32_t name_size;
    MemberKind kind;
    MemberFlaw flaw;
};

class LibarchiveDirectory {
  public:
    // Reads all headers. Throws Error as LibarchiveReader does; LIMIT when they do not fit into
    // `memory`.
    LibarchiveDirectory(Source& source, const Options& options, const Cancel& cancel);

    [[nodiscard]] size_t size() const { return entries_.size(); }
    // In the order of the archive.
    [[nodiscard]] const LibarchiveEntry& entry(size_t index) const { return entries_[index]; }
    [[nodiscard]] std::string_view name(size_t index) const {
        const LibarchiveEntry& entry = entries_[index];
        return std::string_view(names_).substr(static_cast<size_t>(entry.name_at), entry.name_size);
    }
    [[nodiscard]] uint64_t names_size() const { return names_.size(); }

  private:
    std::vector<LibarchiveEntry> entries_;
    std::string names_;
};

// Reads members of one archive. Any number of threads; no locks, so that a child process may use
// it. Each reading walks from a reader that lies idle before the member, or from the start of the
// archive: members that are asked for in their order are read in one pass.
class LibarchiveMembers {
  public:
    // The references must outlive it.
    LibarchiveMembers(const LibarchiveDirectory& directory, const Options& options,
                      const Cancel& cancel)
        : directory_(directory), options_(options), cancel_(cancel) {}
    ~LibarchiveMembers();
    LibarchiveMembers(const LibarchiveMembers&) = delete;
    LibarchiveMembers& operator=(const LibarchiveMembers&) = delete;

    // Throws Error, with the member, unless its kind, its size and its header allow to read it.
    // Reads nothing.
    void check(size_t index) const;
    // A reading of members in ascending order; one thread.
    class Pass {
      public:
        // Over `source`, the archive. Where it outlives `members`, `keep`, the reader is there for
        // the next pass that starts behind where it stops.
        Pass(const LibarchiveMembers& members, Source& source, size_t first, bool keep);
        ~Pass();
        Pass(const Pass&) = delete;
        Pass& operator=(const Pass&) = delete;
        // Fills `out`, which has the member's size. Throws Error with the member; CHANGED when it
        // is not the one that the directory has.
        void read(size_t index, std::span<uint8_t> out);

      private:
        void walk_to(size_t index);

        const LibarchiveMembers& members_;
        const bool keep_;
        std::unique_ptr<LibarchiveReader> reader_;
    };

  private:
    std::unique_ptr<LibarchiveReader> take(size_t first) const;
    void put_back(std::unique_ptr<LibarchiveReader> reader) const;

    const LibarchiveDirectory& directory_;
    const Options& options_;
    const Cancel& cancel_;
    // Each may hold the dictionary of a decoder.
    mutable std::array<std::atomic<LibarchiveReader*>, 4> idle_{};
};

}  // namespace shf
