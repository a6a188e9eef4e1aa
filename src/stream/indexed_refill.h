// After a restore: the samples that were in the shuffle buffer of a lane, whose shards have
// indexes. A thread reads them again in the order of the shards; what is drawn before it comes
// there is read alone, so that the first sample does not wait for the whole buffer.
#pragma once

#include "stream/shard_run.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace shf {

class IndexedRefill {
  public:
    // The nth shard of the lane, of which `resume` wants some samples and no more.
    struct Shard {
        uint64_t nth = 0;
        Resume resume;
    };

    IndexedRefill(LaneContext& context, uint64_t epoch, uint32_t lane, std::vector<Shard> shards);
    ~IndexedRefill();
    IndexedRefill(const IndexedRefill&) = delete;
    IndexedRefill& operator=(const IndexedRefill&) = delete;

    // Sample `place` of all, in the order of the shards, as a block that counts in
    // LaneContext::shuffle_bytes. Consumer; once for each. Throws Error.
    BlockRef take(size_t place);

    // Reads all that were not taken, as far as memory allows. On a thread of its own.
    void read() noexcept;
    // Nothing more is taken. Any thread.
    void cancel();

  private:
    struct Opened;

    [[nodiscard]] std::unique_ptr<Opened> open(size_t number, const Cancel& cancel) const;
    void read_into(SampleSink& sink, const Opened& from, const Resume& resume, const Cancel& cancel,
                   uint64_t expected);
    void read_shard(size_t number);
    BlockRef read_alone(size_t shard, uint64_t number);
    bool keep(size_t place, BlockRef block);

    LaneContext& context_;
    const uint64_t epoch_;
    const uint32_t lane_;
    const std::vector<Shard> shards_;
    std::vector<size_t> first_;       // place of the first sample of each shard
    std::unique_ptr<Opened> opened_;  // the consumer's: the shard that it read last
    Cancel cancel_;
    Stats uncounted_;  // they were counted when they came for the first time

    std::mutex mutex_;  // below
    std::vector<BlockRef> blocks_;
    std::vector<bool> taken_;
};

}  // namespace shf
