// The plan of a run: which consumer owns which lanes, and which shards a lane reads in an epoch.
//
//   1. Epoch e permutes the S shards with a generator keyed by (seed, e), or keeps the list order.
//   2. Shard j of the permuted list belongs to lane j mod L. A lane reads its shards in turn.
//   3. Each lane shuffles its samples on its own, keyed by (seed, e, lane).
//   4. The global sequence takes one sample from each lane in turn. Consumer c of C sees the
//      elements t with t mod C = c: those of the lanes l with l mod C = c when C divides L, else
//      some of those of more lanes (order/lane_readers.h).
#pragma once

#include "core/error.h"
#include "core/options.h"
#include "order/lane_readers.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace shf {

// How much of an epoch a lane gives, when every consumer is to have the same number of samples.
struct LaneQuota {
    static constexpr uint64_t all = UINT64_MAX;

    uint64_t shards = 0;     // from shards_of() on they are repeated, which is padding
    uint64_t last = all;     // samples of the last one of them; `all`: it is read to its end
    uint64_t samples = all;  // samples that the lane gives
};

// Whether a plan may have consumers without a shard.
enum class Idle : uint8_t { refuse, allow };

class Plan {
  public:
    // Throws Error(USAGE) when the options contradict each other, and unless `idle` allows it when
    // there are fewer shards than consumers.
    Plan(const Options& options, uint64_t shards, Idle idle = Idle::refuse);

    // What is wrong when there are fewer shards than consumers.
    [[nodiscard]] std::optional<Error> idle_consumers() const;

    [[nodiscard]] uint64_t consumer() const { return consumer_; }
    [[nodiscard]] uint64_t consumers() const { return lane_readers_.consumers; }
    [[nodiscard]] uint64_t lanes() const { return lane_readers_.lanes; }
    [[nodiscard]] const LaneReaders& lane_readers() const { return lane_readers_; }
    // Whether this consumer keeps only some samples of its lanes: owns() says which.
    [[nodiscard]] bool shares_lanes() const { return readers_ > 1; }
    [[nodiscard]] bool owns(uint64_t number) const { return number % readers_ == place_; }
    // The lanes that this consumer reads, ascending. With the option by_index consumers share all
    // lanes, and what the consumer reads is one sequence, which has the consumer's number.
    [[nodiscard]] std::vector<uint32_t> own_lanes() const;
    // Whether there is anything to read in one of them.
    [[nodiscard]] bool reads(uint32_t lane) const { return by_index_ || shards_of(lane) > 0; }

    // Shards that `lane` reads in each epoch, unless it has given its part of the limit before.
    [[nodiscard]] uint64_t shards_of(uint32_t lane) const;
    // The shard that `lane` reads as its nth (0, 1, ...) in `epoch`. Any thread.
    uint64_t shard(uint64_t epoch, uint32_t lane, uint64_t nth);

    // Samples that `lane` gives in an epoch at most: its part of the limit.
    [[nodiscard]] uint64_t limit_of(uint64_t lane) const;

    // How many of the first `samples` samples of the global sequence a consumer has: the option
    // epoch_samples is dealt out like that.
    [[nodiscard]] uint64_t quota(uint64_t samples, uint64_t consumer) const;
    [[nodiscard]] uint64_t quota(uint64_t samples) const { return quota(samples, consumer_); }

    // For even=drop, even=pad and by_index: the samples of every shard of the list.
    void set_counts(std::vector<uint32_t> counts);
    // Those of all of them.
    [[nodiscard]] uint64_t samples() const { return samples_; }
    // Those of one; nothing when they were not needed.
    [[nodiscard]] std::optional<uint64_t> count_of(uint64_t shard) const {
        return counts_.empty() ? std::nullopt : std::optional<uint64_t>(counts_[shard]);
    }
    // What one of this consumer's lanes gives in an epoch. Any thread. Throws Error(USAGE) when a
    // consumer has none.
    LaneQuota quota(uint64_t epoch, uint32_t lane);
    // Samples that every consumer has in an epoch of even=drop or even=pad.
    uint64_t even_samples(uint64_t epoch);

  private:
    // Under 2^32 shards (max_shards), so four bytes each: a permutation of a million is 4 MB.
    using Permutation = std::vector<uint32_t>;
    std::shared_ptr<const Permutation> permutation(uint64_t epoch);

    const uint64_t shards_, seed_, epoch_samples_, limit_;
    const bool shuffle_shards_, resample_, by_index_;
    LaneReaders lane_readers_;
    uint64_t consumer_;
    uint64_t readers_, place_;  // of lane_readers_, for every sample of shared lanes

    struct EvenEpoch {
        uint64_t epoch;
        uint64_t samples;               // of every consumer
        std::vector<LaneQuota> quotas;  // of this consumer's lanes
    };
    std::shared_ptr<const EvenEpoch> even_epoch(uint64_t epoch);
    EvenEpoch deal(uint64_t epoch);
    LaneQuota quota_of(uint64_t epoch, uint32_t lane, uint64_t takes, uint64_t samples);

    const Even even_;
    const uint64_t shuffle_;
    std::vector<uint32_t> counts_;
    uint64_t samples_ = 0;  // their sum, which every saved state has

    // Lanes stand in one epoch or the next, so two permutations are kept.
    std::mutex mutex_;
    uint64_t epoch_[2] = {UINT64_MAX, UINT64_MAX};
    std::shared_ptr<const Permutation> permutation_[2];
    std::shared_ptr<const EvenEpoch> even_epochs_[2];
};

}  // namespace shf
