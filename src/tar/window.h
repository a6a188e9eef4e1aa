// A window shows a stretch of one shard as contiguous memory and moves forward over it. Bytes are
// read straight into pooled slabs; a range that does not fit the current slab is carried into the
// next one, which is made large enough, so that every member's data lies in one piece. The slabs
// of a mapped shard are pieces of its mapping, which may overlap.
#pragma once

#include "core/memory.h"
#include "core/read_context.h"
#include "core/slab_sizer.h"
#include "io/source.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace shf {

// Who keeps what a window leaves behind.
class SlabKeeper {
  public:
    virtual ~SlabKeeper() = default;
    // Called when the bytes from the mark on are too many to be carried along, or what follows them
    // lies elsewhere: they stay in `slab`, which the keeper holds on to as long as it needs them.
    // The mark moves to position().
    virtual void leave_behind(const StorageRef& slab) = 0;
};

class Window {
  public:
    // `keeper` may be NULL when mark() is not called. The references must outlive the window.
    Window(Sequential& input, const ReadContext& context, SlabSizer& sizer,
           SlabKeeper* keeper = nullptr);
    // The input is what `mapping`, which may be NULL, has in memory: its bytes stay where they are.
    // Before anything is needed.
    void set_mapping(std::shared_ptr<const Mapping> mapping) { mapping_ = std::move(mapping); }

    // Offset of the next byte in the (decompressed) shard.
    [[nodiscard]] uint64_t position() const { return start_ + next_; }
    // Makes the next `size` bytes contiguous in memory; false when the input ends before.
    bool need(size_t size) { return size <= stop_ - next_ || fill(size); }
    // Bytes from position() that are in memory now; at the end of the input, all that are left.
    [[nodiscard]] std::span<const uint8_t> seen() const { return {data_ + next_, stop_ - next_}; }
    // Moves on over bytes that are in memory.
    void advance(size_t size) { next_ += size; }
    // Moves on by `size` bytes without keeping them; returns false when the input ends before.
    // Jumps over bytes that are not in memory when they are more than `worth`: less than a slab is
    // read rather than left out, so that reads stay aligned and disks like it.
    bool skip(uint64_t size, uint64_t worth = 512 * 1024);

    // Moves the next bytes to `out`, which is not empty, and returns how many: at least one, 0 at
    // the end of the input. What is not in memory goes there straight when `out` is large. Not
    // while there is a mark.
    size_t read(std::span<uint8_t> out);

    // Keeps the bytes from here on in one slab with what follows, as long as that is cheap.
    void mark() { mark_ = next_; }
    void unmark() { mark_ = none; }
    // The memory at `offset`, which must lie between the mark (or position) and the bytes seen.
    [[nodiscard]] const uint8_t* at(uint64_t offset) const { return data_ + (offset - start_); }
    // The slab that holds what at() returns.
    [[nodiscard]] const StorageRef& slab() const { return slab_; }

  private:
    static constexpr size_t none = SIZE_MAX;
    bool fill(size_t size);
    bool show(size_t size);
    size_t leave();
    bool jump(uint64_t size);
    void move_to_new_slab(size_t size);

    Sequential& input_;
    const ReadContext context_;
    SlabSizer& sizer_;
    SlabKeeper* const keeper_;
    std::shared_ptr<const Mapping> mapping_;  // NULL: bytes are read into slabs
    StorageRef slab_;
    uint8_t* data_ = nullptr;  // in the slab; offset start_ of the shard
    uint64_t start_ = 0;
    size_t next_ = 0, stop_ = 0, room_ = 0;  // from data_: position, end of bytes, end of slab
    size_t mark_ = none;
    bool ended_ = false;
    std::vector<uint8_t> carried_;  // only while a large slab is exchanged
};

}  // namespace shf
