// The members of one shard from front to back; one class for each format.
#pragma once

#include "core/member.h"
#include "core/options.h"
#include "io/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace shf {

// One thread at a time. After TIMEOUT and CANCELLED the same call can be repeated and resumes;
// after other errors only as survives() says.
class MemberWalk {
  public:
    virtual ~MemberWalk() = default;
    // Finds the next member, behind what is left of the one before. False at the proven end of the
    // shard. Throws Error.
    virtual bool next() = 0;
    // The member that next() has found; valid until the next call of it.
    [[nodiscard]] virtual const Member& member() const = 0;
    // Moves the next bytes of its data to `out`, which is not empty, and returns how many: at least
    // one, 0 at the end, when all checks have held. Throws Error.
    virtual size_t read(std::span<uint8_t> out) = 0;
    // Whether next() may be called after read() has failed with this code.
    [[nodiscard]] virtual bool survives(int32_t code) const = 0;
    // Whether it may be called after it has failed itself with this code (option resync).
    [[nodiscard]] virtual bool passes(int32_t /*code*/) const { return false; }
    // Bytes of the decompressed shard from its start whose checks have held; nothing: it is not
    // compressed as a whole.
    [[nodiscard]] virtual std::optional<uint64_t> verified() const { return std::nullopt; }
    // Property `what` (SHF_MEMBER_*) of the member, beside those in member(); nothing: not known.
    [[nodiscard]] virtual std::optional<uint64_t> number(int32_t what) const = 0;
    // Empty: there is none. Valid until the next call of next().
    [[nodiscard]] virtual std::string_view text(int32_t what) const = 0;
};

// Of a tar, compressed or not, that `input` has from its start. `source` is NULL unless the input
// has its bytes as they are. The references must outlive the result.
std::unique_ptr<MemberWalk> tar_walk(std::unique_ptr<Sequential> input, const Source* source,
                                     const Options& options, const Cancel& cancel);

// Of a ZIP file, in the order in which the entries lie in it; `source` can be read at any offset.
// The references must outlive the result. Throws Error.
std::unique_ptr<MemberWalk> zip_walk(Source& source, const Options& options, const Cancel& cancel);

// Of what only libarchive reads; the rest as zip_walk().
std::unique_ptr<MemberWalk> libarchive_walk(Source& source, const Options& options,
                                            const Cancel& cancel);

}  // namespace shf
