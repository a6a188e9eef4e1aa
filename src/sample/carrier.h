// The members of one shard and their data, as its format has them. Tar members come out of a stream
// of bytes, ZIP entries are read one by one.
#pragma once

#include "codec/decode_points.h"
#include "core/error.h"
#include "core/member.h"
#include "core/read_context.h"
#include "core/slab_sizer.h"
#include "io/source.h"
#include "sample/block_builder.h"
#include "sample/sample_request.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace shf {

// The members of a shard, one after another.
class MemberFeed {
  public:
    virtual ~MemberFeed() = default;
    // Finds the next member. False when there are no more. Throws Error when the rest of the shard
    // cannot be trusted or reached.
    virtual bool next(Member& member) = 0;
    // Passes over the member's data.
    virtual void skip(const Member& member) = 0;
    // Passes over a member that is sound as far as is known, but not wanted. Throws Error when it
    // may be another one than its name says.
    virtual void leave_out(const Member& member) { skip(member); }
    // Keeps the member until release(). Returns what is wrong with this member alone, which is then
    // passed over. Throws Error as next().
    virtual std::optional<Fault> take(const Member& member) = 0;
    // The same of the start alone, where the rest can be read later: see LooseField::rest.
    virtual std::optional<Fault> take_start(const Member& member) { return take(member); }
    // What was kept since release(), in order. Valid until the next call. Without `data` where the
    // feed reads none.
    [[nodiscard]] virtual std::span<const LooseField> kept() = 0;
    // Lets go of what was kept.
    virtual void release() = 0;
    // Whether the offsets of members are their numbers in the archive, and no bytes.
    [[nodiscard]] virtual bool counts_members() const { return false; }
};

// A feed that keeps the members' data.
class Carrier : public MemberFeed {
  public:
    // Moves to the header that starts at `offset` of the (decompressed) shard, before the first
    // member was found. False when the shard ends before it.
    virtual bool start_at(uint64_t offset) = 0;
    // Called once after next() returned false: proves that the end is the true one, or throws
    // Error.
    virtual void finish() = 0;
    // Whether an index can say where fields are: they are plain bytes of the shard's file, or of
    // what comes out of it and take_points() will have where that starts.
    [[nodiscard]] virtual bool in_place() const { return false; }
    // After finish(): of a compressed shard that was opened to find them.
    virtual std::optional<DecodePoints> take_points() { return std::nullopt; }
    // Bytes of the decompressed shard whose checks hold, or that have none (rule D5); NULL when the
    // shard is not compressed as a whole. Changes while members are read.
    [[nodiscard]] virtual const uint64_t* verified() const { return nullptr; }
    // Whether it found a member, or the directory of all of them.
    [[nodiscard]] virtual bool any() const = 0;
    // Where the end marker starts, once next() returned false.
    [[nodiscard]] virtual uint64_t end() const { return 0; }
};

// Opens a carrier of the shard's format (shard_format.h), for `request`. The references must
// outlive it.
std::unique_ptr<Carrier> open_carrier(Source& source, std::string_view url,
                                      const ReadContext& context, SlabSizer& sizer,
                                      const SampleRequest& request);

// For open_carrier.
std::unique_ptr<Carrier> tar_carrier(Source& source, std::string_view url,
                                     const ReadContext& context, SlabSizer& sizer,
                                     const SampleRequest& request);
std::unique_ptr<Carrier> zip_carrier(Source& source, const ReadContext& context, SlabSizer& sizer);
std::unique_ptr<Carrier> libarchive_carrier(Source& source, const ReadContext& context,
                                            SlabSizer& sizer);

}  // namespace shf
