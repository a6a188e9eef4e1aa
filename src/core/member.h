// What a tar or ZIP file is made of.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace shf {

enum class MemberKind : uint8_t {
    file,
    directory,
    hard_link,
    symbolic_link,
    special,       // device, FIFO, volume label, directory dump
    sparse,        // raw bytes are never handed out
    multi_volume,  // a piece of a member that began on another volume
    unknown,
};

// Why the data of a member of this kind is never handed out (UNSUPPORTED); nothing: it is.
std::optional<Fault> refusal(MemberKind kind);

// One member of a tar file. The walker is at the first byte of its data.
struct Member {
    MemberKind kind;
    std::string_view name;   // exact bytes; valid until the walker moves
    uint64_t header_offset;  // of the first header that belongs to it, pax and GNU names included
    uint64_t data_offset;
    uint64_t size;  // of the data as stored, without padding
};

}  // namespace shf
