// Samples on their way into a message, and out of it.
#pragma once

#include "core/cancel.h"
#include "core/memory.h"
#include "core/recycler.h"
#include "feed/feed_frames.h"
#include "feed/feed_socket.h"
#include "feed/payload_packing.h"
#include "sample/block.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shf {

// The checksum of a payload: XXH3-64.
uint64_t sum_of_payload(std::span<const uint8_t> payload);

// The payload and the tables of one message, which grow as samples are added.
class FeedBlockWriter {
  public:
    // `usual`: how many bytes a message will have, as a guess. They come from `payloads`, which
    // must outlive it.
    FeedBlockWriter(bool rows, size_t usual, Recycler& payloads)
        : payloads_(&payloads), usual_(usual) {
        frame_.rows = rows;
    }

    // Begins a sample; its fields follow.
    void begin_sample(const Block& block, uint32_t sample);
    // Memory for `size` bytes of the next field, which the caller writes. Throws std::bad_alloc.
    std::span<uint8_t> add_field(std::string_view name, size_t size);
    void add_field(std::string_view name, std::span<const uint8_t> bytes);
    void forget_fields() noexcept;  // of this sample
    void end_sample();

    [[nodiscard]] uint32_t samples() const { return frame_.samples; }
    [[nodiscard]] uint64_t bytes() const { return used_; }
    // The whole message; the writer is then empty. `about` says what only the lane knows. Throws
    // Error(NOMEM).
    FeedMessage finish(const LaneFrame& about, PayloadPacker& packer);

  private:
    void reserve(size_t more);

    BlockFrame frame_;
    Recycler* payloads_;
    StorageRef payload_;
    size_t usual_, used_ = 0;
    std::string names_;                           // of the sample that is added
    size_t fields_before_ = 0, used_before_ = 0;  // of it
    std::vector<std::string> schemas_;
    std::shared_ptr<const Origin> origin_;  // of the latest sample
    uint32_t origins_ = 0;
};

// Makes blocks of messages. Keeps the lists of names, which are the same in all of them.
class FeedBlockReader {
  public:
    FeedBlockReader(Pool& pool, const Cancel& cancel) : pool_(pool), cancel_(cancel) {}

    // The blocks of one message, in order; their bytes stay where they came, unless they are
    // compressed. `part` as Origin has it. Throws Error: FORMAT, INTEGRITY, CANCELLED;
    // std::bad_alloc.
    std::vector<BlockRef> read(const BlockFrame& frame, FeedPart payload, uint32_t part);

  private:
    std::shared_ptr<const Schema> schema_of(const std::string& names, bool rows);
    StorageRef storage_of(const BlockFrame& frame, FeedPart payload, size_t size);

    Pool& pool_;
    const Cancel& cancel_;
    PayloadUnpacker unpacker_;
    std::unordered_map<std::string, std::shared_ptr<const Schema>> schemas_;
};

}  // namespace shf
