#include "order/plan.h"

#include "core/error.h"
#include "core/random.h"

#include <numeric>
#include <utility>

namespace shf {

Plan::Plan(const Options& options, uint64_t shards)
    : shards_(shards),
      seed_(options.seed),
      epoch_samples_(options.epoch_samples),
      shuffle_shards_(options.shuffle_shards),
      resample_(options.resample) {
    const auto below = [](const char* name, uint64_t value, const char* of, uint64_t bound) {
        if (value >= bound)
            throw Error(SHF_E_USAGE,
                        std::string(name) + "=" + std::to_string(value) + " with " + of + "=" +
                            std::to_string(bound),
                        std::string(name) + " counts from 0 to " + of + " - 1");
    };
    below("rank", options.rank, "world_size", options.world_size);
    below("worker", options.worker, "num_workers", options.num_workers);
    consumers_ = options.world_size * options.num_workers;  // both bounded: no overflow
    if (consumers_ > UINT32_MAX)                            // lanes are numbered with 32 bits
        throw Error(SHF_E_USAGE,
                    std::to_string(consumers_) + " consumers (world_size x num_workers)",
                    "at most 4294967295 can share the shards");
    consumer_ = options.rank * options.num_workers + options.worker;
    lanes_ = options.lanes == 0 ? consumers_ : options.lanes;
    if (lanes_ % consumers_ != 0)
        throw Error(SHF_E_USAGE,
                    "lanes=" + std::to_string(lanes_) + " cannot be dealt out to " +
                        std::to_string(consumers_) + " consumers (world_size x num_workers)",
                    "make lanes a multiple of them");
    if (epoch_samples_ != 0 && epoch_samples_ < consumers_)
        throw Error(SHF_E_USAGE,
                    "epoch_samples=" + std::to_string(epoch_samples_) + " for " +
                        std::to_string(consumers_) + " consumers (world_size x num_workers)",
                    "give every consumer at least one sample");
    if (shards_ == 0) throw Error(SHF_E_USAGE, "no shards", "give at least one URL");
    if (shards_ < consumers_ && !resample_)
        throw Error(SHF_E_USAGE,
                    std::to_string(shards_) + " shards for " + std::to_string(consumers_) +
                        " consumers (world_size x num_workers)",
                    "write more and smaller shards, use fewer workers, or set resample=true");
}

std::vector<uint32_t> Plan::own_lanes() const {
    std::vector<uint32_t> lanes;
    for (uint64_t lane = consumer_; lane < lanes_; lane += consumers_)
        lanes.push_back(static_cast<uint32_t>(lane));
    return lanes;
}

uint64_t Plan::shards_of(uint32_t lane) const {
    // With replacement every lane draws equally many: as many as the fullest lane of a plain epoch.
    if (resample_) return (shards_ + lanes_ - 1) / lanes_;
    return lane >= shards_ ? 0 : (shards_ - lane + lanes_ - 1) / lanes_;
}

uint64_t Plan::shard(uint64_t epoch, uint32_t lane, uint64_t turn) {
    if (resample_) return Random(Random::resampling, {seed_, epoch, lane, turn}).below(shards_);
    const uint64_t j = lane + turn * lanes_;
    return shuffle_shards_ ? (*permutation(epoch))[j] : j;
}

std::shared_ptr<const Plan::Permutation> Plan::permutation(uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    const size_t slot = epoch % 2;
    if (epoch_[slot] != epoch) {
        auto order = std::make_shared<Permutation>(shards_);
        std::iota(order->begin(), order->end(), 0U);
        Random random(Random::shard_order, {seed_, epoch});
        for (uint64_t i = shards_; i > 1; --i)  // Fisher and Yates
            std::swap((*order)[i - 1], (*order)[random.below(i)]);
        permutation_[slot] = std::move(order);
        epoch_[slot] = epoch;
    }
    return permutation_[slot];
}

uint64_t Plan::share_of_epoch_samples() const {
    return epoch_samples_ / consumers_ + (consumer_ < epoch_samples_ % consumers_ ? 1 : 0);
}

}  // namespace shf
