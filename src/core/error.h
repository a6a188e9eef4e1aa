// Errors travel inside the library as the exception shf::Error and become shf_error only in
// src/api. Each part of the library adds what it knows: the thrower names cause, offset and help,
// the reader adds member and shard.
#pragma once

#include <shardfeed.h>

#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

namespace shf {

inline constexpr uint64_t no_offset = std::numeric_limits<uint64_t>::max();

// One fault. `code` is a SHF_E_* value, `offset` a byte position in the (decompressed) shard.
struct Fault {
    int32_t code = SHF_E_INTERNAL;
    int os_error = 0;
    uint64_t offset = no_offset;
    uint64_t unverified =
        0;               // samples of the shard that were delivered before a check of it failed
    std::string shard;   // redacted URL, empty when no shard is concerned
    std::string member;  // escaped name, empty when no member is concerned
    std::string cause;   // "header checksum is 12, expected 4711"
    std::string help;    // "set end_marker=optional", empty when there is nothing to advise
    std::string key{};   // of the sample, as it is; empty when no sample is concerned

    // "SHARD: member NAME: at byte N: CAUSE (help: HELP)" - the text of shf_error::message.
    [[nodiscard]] std::string text() const;
};

class Error : public std::exception {
  public:
    explicit Error(Fault fault);
    Error(int32_t code, std::string cause, std::string help = {}, uint64_t offset = no_offset);
    // An operating-system failure: `doing` says what failed ("open"), `number` is errno.
    static Error system(std::string_view doing, int number);

    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
    [[nodiscard]] int32_t code() const noexcept { return fault_.code; }
    [[nodiscard]] const Fault& fault() const noexcept { return fault_; }

  private:
    Fault fault_;
    std::string text_;
};

// Help that several parts of the library give: for bytes that were damaged on their way here, and
// for what the writer of a shard has done.
inline constexpr const char* copy_again = "copy it again, or use on_error=skip_shard";
inline constexpr const char* write_again = "write the shard again, or use on_error=skip_shard";
// For a file that changed while it was read.
inline constexpr const char* shrunk_help =
    "write to another name, and rename the file when it is whole";

// Takes what the help says of on_error out of it: for calls that have no such option. Help that
// names the option does so at its end, after ", or".
void drop_skips(Fault& fault) noexcept;

// True for the classes that concern one shard or member and may be skipped under on_error
// (the table of error classes: not AUTH, TLS, NOSPACE, NOMEM, CANCELLED, USAGE, FORKED, INTERNAL).
bool skippable(int32_t code) noexcept;

// What the exception being handled says; to be called inside a catch block. Never throws: when
// memory is short the texts are left out.
Fault describe_exception() noexcept;

// Fills the caller's error; `out` may be NULL. Never throws; a long message is cut at a character
// border.
void write_error(shf_error* out, const Fault& fault) noexcept;

// Whether all of `bytes` is valid UTF-8 (RFC 3629).
bool is_utf8(std::string_view bytes) noexcept;

// A count for messages: "1 shard", "4 shards".
std::string plural(uint64_t count, std::string_view noun);

// A name for messages: control bytes, backslash, quotes and invalid UTF-8 become \xNN, so that no
// terminal sequence passes; at most 200 bytes of it.
std::string escape(std::string_view bytes);

}  // namespace shf
