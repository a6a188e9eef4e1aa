#include "order/plan.h"

#include "core/random.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shf {

namespace {

void check_by_index(const Options& options) {
    if (options.epoch_samples != 0 || options.resample)
        throw Error(SHF_E_USAGE, "by_index with epoch_samples or resample",
                    "leave them out: even=drop or even=pad gives every rank the same number");
    if (options.on_error == OnError::skip_shard)
        throw Error(SHF_E_USAGE, "by_index with on_error=skip_shard",
                    "set on_error=skip_sample: samples are read one by one");
    if (options.batch == 0 || options.num_workers == 1) return;
    if (options.epochs != 1)
        throw Error(SHF_E_USAGE,
                    "by_index with workers, batches and epochs=" + std::to_string(options.epochs),
                    "set epochs=1, and open the stream again with the next epoch");
    if (options.pack != 0 || !options.bucket.empty() || options.batch_elements != 0)
        throw Error(SHF_E_USAGE,
                    "by_index with workers and pack, bucket or batch_elements: which samples make "
                    "a batch is not known before they are read",
                    "use threads or transform workers instead of workers, or leave out by_index");
}

}  // namespace

Plan::Plan(const Options& options, uint64_t shards, Idle idle)
    : shards_(shards),
      seed_(options.seed),
      epoch_samples_(options.epoch_samples),
      limit_(options.limit),
      shuffle_shards_(options.shuffle_shards),
      resample_(options.resample),
      by_index_(options.by_index),
      even_(options.even),
      shuffle_(std::max<uint64_t>(options.shuffle, 1)) {
    const auto below = [](const char* name, uint64_t value, const char* of, uint64_t bound) {
        if (value >= bound)
            throw Error(SHF_E_USAGE,
                        std::string(name) + "=" + std::to_string(value) + " with " + of + "=" +
                            std::to_string(bound),
                        std::string(name) + " counts from 0 to " + of + " - 1");
    };
    below("rank", options.rank, "world_size", options.world_size);
    below("worker", options.worker, "num_workers", options.num_workers);
    const uint64_t consumers = options.world_size * options.num_workers;  // bounded: no overflow
    if (consumers > UINT32_MAX)  // lanes are numbered with 32 bits
        throw Error(SHF_E_USAGE, plural(consumers, "consumer") + " (world_size x num_workers)",
                    "at most 4294967295 can share the shards");
    consumer_ = options.rank * options.num_workers + options.worker;
    const uint64_t usual = by_index_ ? options.world_size : consumers;
    lane_readers_ = {.lanes = options.lanes == 0 ? usual : options.lanes, .consumers = consumers};
    readers_ = by_index_ ? 1 : lane_readers_.readers();
    place_ = by_index_ ? 0 : lane_readers_.place(consumer_);
    if (by_index_) check_by_index(options);
    if (shares_lanes() && even_ != Even::none)
        throw Error(SHF_E_USAGE,
                    "even with lanes=" + std::to_string(lanes()) +
                        ", which cannot be dealt out to " + plural(consumers, "consumer") +
                        " (world_size x num_workers)",
                    "make lanes a multiple of them, or leave out even");
    if (epoch_samples_ != 0 && epoch_samples_ < consumers)
        throw Error(SHF_E_USAGE,
                    "epoch_samples=" + std::to_string(epoch_samples_) + " for " +
                        plural(consumers, "consumer") + " (world_size x num_workers)",
                    "give every consumer at least one sample");
    if (limit_ != 0 && limit_ < consumers)
        throw Error(SHF_E_USAGE,
                    "limit=" + std::to_string(limit_) + " for " + plural(consumers, "consumer") +
                        " (world_size x num_workers)",
                    "give every consumer at least one sample");
    if (limit_ != 0 && (even_ != Even::none || epoch_samples_ != 0))
        throw Error(SHF_E_USAGE, "limit with even or epoch_samples",
                    "leave out limit: epoch_samples says how many samples an epoch has");
    if (even_ != Even::none && (resample_ || epoch_samples_ != 0))
        throw Error(SHF_E_USAGE, "even with resample or epoch_samples",
                    "leave out even: epoch_samples gives every consumer the same number");
    if (even_ != Even::none && options.on_error != OnError::raise)
        throw Error(SHF_E_USAGE, "even with on_error=skip_sample or on_error=skip_shard",
                    "what is skipped would be missing from one part: set on_error=raise, or "
                    "epoch_samples instead of even");
    if (shards_ == 0) throw Error(SHF_E_USAGE, "no shards", "give at least one URL");
    if (const auto error = idle_consumers(); error && idle == Idle::refuse) throw Error(*error);
}

std::optional<Error> Plan::idle_consumers() const {
    if (shards_ >= lane_readers_.groups() || resample_ || by_index_) return std::nullopt;
    return Error(SHF_E_USAGE,
                 plural(shards_, "shard") + " for " + plural(consumers(), "consumer") +
                     " (world_size x num_workers)",
                 "write more and smaller shards, use fewer workers, or set resample=true");
}

std::vector<uint32_t> Plan::own_lanes() const {
    if (by_index_) return {static_cast<uint32_t>(consumer_)};
    std::vector<uint32_t> own;
    for (uint64_t lane = consumer_ % lane_readers_.groups(); lane < lanes();
         lane += lane_readers_.groups())
        own.push_back(static_cast<uint32_t>(lane));
    return own;
}

uint64_t Plan::shards_of(uint32_t lane) const {
    if (limit_of(lane) == 0) return 0;
    // With replacement every lane draws equally many: as many as the fullest lane of a plain epoch.
    if (resample_) return (shards_ + lanes() - 1) / lanes();
    return lane >= shards_ ? 0 : (shards_ - lane + lanes() - 1) / lanes();
}

uint64_t Plan::shard(uint64_t epoch, uint32_t lane, uint64_t nth) {
    if (resample_) return Random(Random::resampling, {seed_, epoch, lane, nth}).below(shards_);
    const uint64_t j = lane + nth % shards_of(lane) * lanes();
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

// The elements of the global sequence come from the lanes in turn.
uint64_t Plan::limit_of(uint64_t lane) const {
    if (limit_ == 0 || by_index_) return LaneQuota::all;
    return limit_ / lanes() + (lane < limit_ % lanes() ? 1 : 0);
}

uint64_t Plan::quota(uint64_t samples, uint64_t consumer) const {
    return samples / consumers() + (consumer < samples % consumers() ? 1 : 0);
}

// ---- Even epochs --------------------------------------------------------------------------------

namespace {

// Deals `all` samples out to lanes that have `have` of them, one from each in turn as long as it
// has any: what each gives.
std::vector<uint64_t> deal_in_turn(const std::vector<uint64_t>& have, uint64_t all) {
    std::vector<uint64_t> sorted = have;
    std::sort(sorted.begin(), sorted.end());
    // Rounds in which every lane that has so many gives one.
    uint64_t rounds = 0, left = all;
    for (size_t i = 0; i < sorted.size(); ++i) {
        const uint64_t lanes = sorted.size() - i;
        const uint64_t more = std::min(sorted[i] - rounds, left / lanes);
        rounds += more;
        left -= more * lanes;
        if (rounds < sorted[i]) break;
    }
    std::vector<uint64_t> gives;
    for (const uint64_t lane : have) {
        const bool one_more = lane > rounds && left > 0;
        left -= one_more ? 1 : 0;
        gives.push_back(std::min(lane, rounds) + (one_more ? 1 : 0));
    }
    return gives;
}

}  // namespace

void Plan::set_counts(std::vector<uint32_t> counts) {
    counts_ = std::move(counts);
    samples_ = std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

uint64_t Plan::even_samples(uint64_t epoch) {
    return even_epoch(epoch)->samples;
}

LaneQuota Plan::quota(uint64_t epoch, uint32_t lane) {
    if (even_ == Even::none) return {.shards = shards_of(lane), .samples = limit_of(lane)};
    return even_epoch(epoch)->quotas[lane / consumers()];
}

std::shared_ptr<const Plan::EvenEpoch> Plan::even_epoch(uint64_t epoch) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto& known = even_epochs_[epoch % 2]; known && known->epoch == epoch)
            return known;
    }
    auto made = std::make_shared<const EvenEpoch>(deal(epoch));
    const std::lock_guard lock(mutex_);
    return even_epochs_[epoch % 2] = std::move(made);
}

Plan::EvenEpoch Plan::deal(uint64_t epoch) {
    std::vector<uint64_t> of_consumer(consumers()), of_lane(own_lanes().size());
    const auto order = shuffle_shards_ ? permutation(epoch) : nullptr;
    for (uint64_t j = 0; j < shards_; ++j) {
        const uint64_t count = counts_[order ? (*order)[j] : j];
        const uint64_t lane = j % lanes();
        of_consumer[lane % consumers()] += count;
        if (lane % consumers() == consumer_) of_lane[lane / consumers()] += count;
    }
    const auto [fewest, most] = std::minmax_element(of_consumer.begin(), of_consumer.end());
    if (*fewest == 0)
        throw Error(SHF_E_USAGE,
                    "consumer " + std::to_string(fewest - of_consumer.begin()) +
                        " has no sample in epoch " + std::to_string(epoch),
                    "write more shards, or use fewer ranks and workers");
    EvenEpoch even{.epoch = epoch, .samples = even_ == Even::drop ? *fewest : *most, .quotas = {}};
    std::vector<uint64_t> takes;
    if (even_ == Even::drop) {
        takes = deal_in_turn(of_lane, even.samples);
    } else {
        // The lanes that have samples repeat about as many each.
        uint64_t more = even.samples - of_consumer[consumer_];
        auto lanes = static_cast<uint64_t>(
            std::count_if(of_lane.begin(), of_lane.end(), [](uint64_t n) { return n > 0; }));
        for (const uint64_t samples : of_lane) {
            const uint64_t repeated = samples == 0 ? 0 : (more + lanes - 1) / lanes;
            takes.push_back(samples + repeated);
            more -= repeated;
            lanes -= samples == 0 ? 0 : 1;
        }
    }
    for (size_t i = 0; i < takes.size(); ++i)
        even.quotas.push_back(quota_of(epoch, static_cast<uint32_t>(consumer_ + i * consumers()),
                                       takes[i], of_lane[i]));
    return even;
}

// Which shards a lane with so many samples reads to give `takes` of them.
LaneQuota Plan::quota_of(uint64_t epoch, uint32_t lane, uint64_t takes, uint64_t samples) {
    if (takes == 0) return {.shards = 0, .last = LaneQuota::all, .samples = 0};
    // Before the last one is drawn the shuffle buffer is full, as far as there are samples.
    uint64_t left = takes <= samples ? std::min(samples, takes + shuffle_ - 1) : takes;
    if (left == samples)
        return {.shards = shards_of(lane), .last = LaneQuota::all, .samples = takes};
    for (uint64_t nth = 0;; ++nth) {
        const uint64_t count = counts_[shard(epoch, lane, nth)];
        if (count >= left && count > 0) return {.shards = nth + 1, .last = left, .samples = takes};
        left -= count;
    }
}

}  // namespace shf
