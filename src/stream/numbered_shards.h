// Shards whose samples are read by number, for the option by_index: opened when one of them is
// wanted, and closed when others were wanted since.
#pragma once

#include "codec/stretch_cache.h"
#include "core/recycler.h"
#include "dataset/dataset_shard.h"
#include "sample/sample_filter.h"
#include "stream/sample_lane.h"
#include "stream/shard_run.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

class NumberedShards {
  public:
    // Of the shards of `context`, whose samples come through `lane`.
    NumberedShards(LaneContext& context, uint32_t lane);
    ~NumberedShards();
    NumberedShards(const NumberedShards&) = delete;
    NumberedShards& operator=(const NumberedShards&) = delete;

    // A shard, which stays open as long as somebody has it.
    class Shard {
      public:
        Shard(LaneContext& context, uint32_t lane, uint64_t number);

        // How much payload sample `number` has, in bytes; numbers count what the filter leaves.
        [[nodiscard]] uint64_t bytes(uint64_t number) const {
            return samples_->bytes(in_shard(number));
        }
        // Reads samples, with these numbers, which ascend. They are of `epoch`, and perhaps there
        // only to fill it up. Throws Error; then there are none.
        void read(std::span<const uint64_t> numbers, std::span<Delivery> out, uint64_t epoch,
                  bool padding) const;

      private:
        friend NumberedShards;
        [[nodiscard]] uint64_t memory() const;
        [[nodiscard]] size_t in_shard(uint64_t number) const;
        void adopt(Block& block, const std::shared_ptr<const Origin>& origin) const;

        LaneContext& context_;
        const uint32_t lane_;
        const uint64_t number_;
        const std::string url_, shown_;  // with secrets, and without
        std::unique_ptr<DatasetShard> samples_;
        bool all_ = true;             // every sample is wanted, or
        std::vector<size_t> wanted_;  // these
    };
    // Any thread. Throws Error; of a shard that could not be opened in `epoch`, the same again.
    std::shared_ptr<const Shard> open(uint64_t number, uint64_t epoch);

  private:
    struct Place {
        std::mutex mutex;  // while it is opened
        std::shared_ptr<const Shard> shard;
        std::optional<Fault> fault;  // why it could not be opened ...
        uint64_t fault_epoch = 0;    // ... in this epoch
        std::list<uint64_t>::iterator use;
    };
    [[nodiscard]] std::shared_ptr<const Shard> make(uint64_t number) const;
    void close_others(uint64_t number, uint64_t added);

    LaneContext& context_;
    const uint32_t lane_;
    const FieldFilter fields_;
    mutable FileBudget budget_;
    mutable ScratchPool scratches_;
    struct Drop {
        void operator()(Recycler* memory) const { memory->drop(); }
    };
    const std::unique_ptr<Recycler, Drop> memory_;
    mutable StretchCache stretches_;
    const DatasetContext dataset_;
    mutable std::atomic<uint64_t> opened_{0};

    std::mutex mutex_;  // below
    std::map<uint64_t, std::shared_ptr<Place>> places_;
    std::list<uint64_t> used_;  // the latest first
    uint64_t memory_used_ = 0;  // by the indexes of all that are open
};

}  // namespace shf
