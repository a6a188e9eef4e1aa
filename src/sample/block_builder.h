// Puts samples into blocks. Small samples are copied next to each other, large ones stay where they
// are; either way a kept block holds at most 64 KiB more than 8 times its smallest sample.
#pragma once

#include "core/slab_sizer.h"
#include "sample/block.h"

#include <functional>

namespace shf {

// A field as it lies in memory, on its way into a block.
struct LooseField {
    const uint8_t* data;
    uint64_t size;
    const StorageRef* storage;  // keeps data alive; outlives the call of add()
    uint64_t offset = 0;        // of the data in the (decompressed) shard
    uint64_t rest = 0;          // bytes of the field after the data, which are not in memory
};

// A sample on its way into a block.
struct LooseSample {
    std::string_view key;
    uint64_t offset;  // of its first header in the shard
    const std::shared_ptr<const Origin>& origin;
    const std::shared_ptr<const Schema>& schema;
    std::span<const LooseField> fields;
};

class BlockBuilder {
  public:
    // Samples up to this size are always copied together: their headers would waste most of a slab.
    static constexpr uint64_t always_copied = SlabSizer::always_copied;

    // Full blocks go to `full`. `single_samples`: one sample per block, copied out of its slab
    // unless it fills half of it, so that a shuffle buffer can keep it for long.
    BlockBuilder(Pool& pool, const Cancel& cancel, bool single_samples,
                 std::function<void(BlockRef)> full);

    // Where deferred parts of fields are. Before the first sample.
    void set_source(std::shared_ptr<Source> source) { source_ = std::move(source); }

    // Returns the bytes of payload.
    uint64_t add(const LooseSample& sample);
    // True when add() would put the sample into the block under construction.
    [[nodiscard]] bool accepts(const LooseSample& sample) const;
    // Passes on what there is, if anything.
    void flush();

    [[nodiscard]] size_t count() const { return offset_.size(); }

  private:
    // How a sample would be placed.
    struct Placement {
        uint64_t payload;
        bool copied;  // next to the others, or left where it is
        bool joins;   // the block under construction takes it
    };
    [[nodiscard]] Placement place(const LooseSample& sample) const;
    [[nodiscard]] uint64_t shared_bytes(const Schema& schema, const Origin& origin) const;
    uint64_t buffer_for(const StorageRef& storage);
    void copy(std::span<const LooseField> fields, uint64_t payload);
    void refer(std::span<const LooseField> fields);

    Pool& pool_;
    const Cancel& cancel_;
    const bool single_samples_;
    const std::function<void(BlockRef)> full_;

    // The block under construction; kept between blocks for their capacity.
    std::vector<uint64_t> first_field_, schema_, key_, origin_, offset_, buffer_, start_, stop_;
    std::vector<Deferred> deferred_;  // only with a source
    std::shared_ptr<Source> source_;
    std::string keys_;
    std::vector<StorageRef> storages_;
    std::vector<std::span<const uint8_t>> buffers_;  // only while a block is made
    std::vector<std::shared_ptr<const Schema>> schemas_;
    std::vector<std::shared_ptr<const Origin>> origins_;
    StorageRef arena_;  // the storage that copies go to, in storages_ too
    uint64_t arena_buffer_ = 0;
    size_t arena_used_ = 0;
    uint64_t storage_bytes_ = 0, payload_bytes_ = 0, deferred_bytes_ = 0, shared_bytes_ = 0;
    uint64_t smallest_ = UINT64_MAX;
};

}  // namespace shf
