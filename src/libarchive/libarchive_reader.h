// The members of an archive that only libarchive reads, from front to back.
#pragma once

#include "codec/other_archive.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/member.h"
#include "io/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shf {

struct Options;

// What is wrong with one member according to its header.
enum class MemberFlaw : uint8_t { none, encrypted, no_size, ratio };

// Why a member of `size` bytes with this flaw is not read. Not of `none`.
Fault fault_of(MemberFlaw flaw, uint64_t size);

// One thread at a time, any of them. After TIMEOUT and CANCELLED the same call can be repeated, and
// resumes: it reads again from the start of the archive on. Other errors of next() repeat.
//
// Where libarchive warns, this throws: its warnings are of names that it changed, of skipped
// bytes, and of wrong checksums.
class LibarchiveReader {
  public:
    // `source` can seek, has a size, and is one of other_archive(). Reads nothing. The references
    // must outlive the reader. Throws Error: UNSUPPORTED where there is no libarchive.
    LibarchiveReader(Source& source, const Options& options, const Cancel& cancel);
    ~LibarchiveReader();
    LibarchiveReader(const LibarchiveReader&) = delete;
    LibarchiveReader& operator=(const LibarchiveReader&) = delete;

    // Finds the next member, behind what is left of the one before. False at the end of the
    // archive, as far as its format proves it. Its offsets are its number. Throws Error.
    bool next(Member& member);
    // Moves the next bytes of its data to `out`, which is not empty, and returns how many: at least
    // one, 0 at the end, when they are as many as the header says and all checks that the format
    // has hold. Throws Error.
    size_t read(std::span<uint8_t> out);
    // Fills `out`, which has the size of the member, to its end. Throws Error.
    void read_whole(std::span<uint8_t> out);
    // Whether next() may be called after read() has failed: the fault is of this member alone.
    [[nodiscard]] bool can_continue() const;

    // How many members next() has found.
    [[nodiscard]] uint64_t found() const;
    // Bytes behind the archive were accepted (trailing=ignore).
    [[nodiscard]] bool saw_trailing() const;
    // Whether it is of a kind that takes longer to decompress than memory takes to get.
    [[nodiscard]] bool is_slow() const;

    // Of the member that next() has found.
    [[nodiscard]] MemberFlaw flaw() const;
    [[nodiscard]] std::optional<uint64_t> crc() const;
    [[nodiscard]] uint64_t mode() const;  // permission bits
    [[nodiscard]] std::optional<uint64_t> uid() const;
    [[nodiscard]] std::optional<uint64_t> gid() const;
    [[nodiscard]] std::optional<int64_t> mtime() const;  // nanoseconds since 1970
    // Empty when there is none. Valid until the next call of next().
    [[nodiscard]] std::string_view link() const;
    [[nodiscard]] std::string_view user() const;
    [[nodiscard]] std::string_view group() const;

  private:
    struct State;
    const std::unique_ptr<State> state_;
};

// The library and its version, "libarchive 3.6.2". Static text. NULL when there is none.
const char* libarchive_version();

}  // namespace shf
