// What the headers of a tar member say besides name, kind and size. Kept only for those who ask:
// numbers are parsed when they are asked for, and one that breaks the rules is not known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// Owner and time, as a pax header has them. What is empty deletes what a global or ustar header
// says (POSIX.1-2017, pax Extended Header).
struct PaxFields {
    std::optional<std::string> uid, gid, mtime, user, group, link;

    // Takes one record, if it is one of these.
    void take(std::string_view key, std::string_view value);
};

struct TarMetadata {
    std::array<uint8_t, 512> header;  // the last one of the member
    PaxFields pax, global;  // of the member, and of those behind a global header in its archive
    std::string long_link;  // GNU; empty: none

    // A member begins.
    void forget_member();
    void take_header(std::span<const uint8_t, 512> block);

    [[nodiscard]] std::optional<uint64_t> mode() const;  // permission bits
    [[nodiscard]] std::optional<uint64_t> uid() const;
    [[nodiscard]] std::optional<uint64_t> gid() const;
    // In nanoseconds since 1970; nothing when they do not fit 64 bits.
    [[nodiscard]] std::optional<int64_t> mtime() const;
    // Empty when there is none.
    [[nodiscard]] std::string_view link() const;
    [[nodiscard]] std::string_view user() const;
    [[nodiscard]] std::string_view group() const;
};

}  // namespace shf
