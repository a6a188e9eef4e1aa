// The tar walker: v7, ustar, GNU and pax headers over a window. Strict: what conforming readers
// could understand in two ways is an error (rules T1 to T25). The rules' sources are POSIX.1-2017
// "pax Interchange Format" and "ustar Interchange Format", and the GNU tar manual, "Basic Tar
// Format".
#pragma once

#include "core/error.h"
#include "core/member.h"
#include "core/stats.h"
#include "tar/window.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// A pax header's records that matter here.
struct PaxRecords {
    std::optional<std::string> path, linkpath;
    std::optional<uint64_t> size;
    bool sparse = false, sparse_name = false;
};

struct PaxFields;
struct TarMetadata;

// Parses the body of a pax extended header at `offset` of the shard. `global` is a
// 'g' header, in which names and sizes are refused. What is said of owner and time goes to
// `fields`, which may be NULL. Throws Error(FORMAT).
void parse_pax(std::string_view body, bool global, uint64_t offset, PaxRecords& records,
               PaxFields* fields = nullptr);

// Where the header after a member starts.
uint64_t end_of(const Member& member);

class TarWalker {
  public:
    // Counts what it accepts and passes over in `stats`.
    TarWalker(Window& window, const Options& options, Stats& stats);
    ~TarWalker();

    // Finds the next member. False at the proven end of the archive (and of the input). The data of
    // the member before must have been passed with skip_data() or read and passed by the caller.
    // Throws Error; the scan cannot continue after that, unless it was TIMEOUT or CANCELLED: the
    // next call then resumes, with the same `member`.
    bool next(Member& member);
    // After next() has failed: moves on to the next block of 512 bytes that is a header, for the
    // next call of next(). False when none is before the end of the input. Throws what reading
    // throws.
    bool resync();
    // Where the bytes start that next() has failed at: behind the last whole member.
    [[nodiscard]] uint64_t damaged_from() const;
    // Keeps what the headers of each member say besides that; `metadata` must outlive the walker.
    void keep_metadata(TarMetadata& metadata) { metadata_ = &metadata; }

    // Makes the member's data contiguous in the window and moves past it: the bytes are at
    // window.at(member.data_offset). pass_padding() must follow. Throws Error(TRUNCATED).
    void take_data(const Member& member);
    // The same of the first `size` bytes of the data; skip_rest() must follow.
    void take_start(const Member& member, uint64_t size);
    // Moves past the rest and the padding, without reading them where the input can jump. Throws
    // Error(TRUNCATED).
    void skip_rest(const Member& member, uint64_t start);
    // Moves past the padding of the data. Throws Error(TRUNCATED).
    void pass_padding(const Member& member);
    // Moves past what is left of the data, and past the padding, without keeping it. Throws
    // Error(TRUNCATED).
    void skip_data(const Member& member);
    // Moves the next bytes of the data to `out`, which is not empty, and returns how many: at least
    // one, 0 when there are no more and the padding was passed. Throws Error(TRUNCATED).
    size_t read_data(const Member& member, std::span<uint8_t> out);
    // Junk, a long tail of zeros, or a hole after the end was accepted (trailing=ignore).
    [[nodiscard]] bool saw_trailing() const { return saw_trailing_; }
    // The input is that of `source` from byte `start` on, as it is: its length may be known before
    // reading, and how it ends. `source` must outlive the walker.
    void set_source(const Source& source, uint64_t start = 0);

  private:
    struct Pending;  // headers that describe the next member
    void parse_header(const uint8_t* block, Pending& pending, Member& member, bool& ready);
    void read_meta(char type, uint64_t size, uint64_t at, Pending& pending);
    bool pass_sparse_map(Member& member);
    bool read_end();
    bool skip_zeros();
    bool finish();
    [[nodiscard]] uint64_t data_left(const Member& member) const;
    [[nodiscard]] bool in_input(uint64_t size) const;
    bool need_declared(uint64_t size);
    [[noreturn]] void not_a_tar(std::string_view seen, uint64_t at) const;

    Window& window_;
    const Options& options_;
    Stats& stats_;
    const Source* source_ = nullptr;  // NULL: its bytes are not the input's
    std::optional<uint64_t> input_size_;
    const std::unique_ptr<Pending> pending_;
    std::string name_;                  // joined or long name of the current member
    std::array<char, 100> short_name_;  // else: the field of the header
    bool saw_trailing_ = false;
    TarMetadata* metadata_ = nullptr;  // NULL: nobody asks
    // Where a call was when it ended before it had found a member.
    bool in_sparse_map_ = false;
    uint64_t refused_;                // the last block that was looked at as a header
    std::optional<uint64_t> marker_;  // the end marker behind which it skips zeros, or drops junk
    bool dropping_ = false;
};

}  // namespace shf
