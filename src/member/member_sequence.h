// The members of one archive, one after another: names, headers and bytes as they are.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "io/source.h"
#include "io/source_context.h"
#include "io/whole_file.h"
#include "member/member_walk.h"
#include "sample/shard_format.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// One thread at a time, but for cancel(). Memory does not grow with a member; a file that is no
// tar and cannot be read at any offset is taken into memory, at most the option `memory`. A call
// ends after the option `timeout`, or when the interrupt function says so, and continues when it is
// repeated; other errors repeat.
class MemberSequence {
  public:
    // Opens the file at `url`, and reads nothing. Throws Error.
    MemberSequence(const std::string& url, const Options& options);

    // Moves to the next member; what is left of the one before is skipped. False at the proven
    // end of the file. Throws Error.
    bool next();
    // Moves the next bytes of the member to `out`, which is not empty, and returns how many: at
    // least one, 0 at its end, when all checks have held. Throws Error. What is wrong with one
    // entry of a ZIP file, or a kind of member whose data is not read, is no error of the next
    // member.
    size_t read(std::span<uint8_t> out);

    // Of the member that next() has found. Empty and nothing when there is none. Valid until the
    // next call of next().
    [[nodiscard]] std::string_view name() const;
    [[nodiscard]] std::optional<uint64_t> number(int32_t what) const;
    [[nodiscard]] std::string_view text(int32_t what) const;

    // From any thread.
    void cancel() noexcept { cancel_.request(); }

  private:
    template <typename Do>
    auto guarded(Do action);
    void open_walk();
    std::unique_ptr<MemberWalk> walk_in_place(ShardFormat format, Source& source) const;
    size_t read_member(std::span<uint8_t> out);

    const Options options_;
    const std::string url_;
    Cancel cancel_;
    SourceUse source_use_;
    std::unique_ptr<Source> source_;
    std::unique_ptr<Sequential> input_;  // of a source that cannot seek, until there is a walk
    std::vector<uint8_t> head_;          // its first bytes
    WholeFile whole_;                    // all of them, of a file that is no tar
    std::unique_ptr<MemberWalk> walk_;
    bool has_member_ = false;
    bool ended_ = false;
    std::optional<Fault> failure_;         // repeats
    std::optional<Fault> member_failure_;  // of the member; repeats until the next one
};

}  // namespace shf
