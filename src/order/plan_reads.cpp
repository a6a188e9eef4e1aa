#include "order/plan_reads.h"

#include "core/error.h"
#include "order/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shf {

namespace {

// How many samples each of a consumer's lanes gives, and what number each of them is.
class TakenInTurn {
  public:
    // `given`: of each lane.
    explicit TakenInTurn(std::vector<uint64_t> given)
        : given_(std::move(given)), shortest_first_(given_.size()), open_(given_.size() + 1) {
        std::iota(shortest_first_.begin(), shortest_first_.end(), size_t{0});
        std::stable_sort(shortest_first_.begin(), shortest_first_.end(),
                         [this](size_t a, size_t b) { return given_[a] < given_[b]; });
        for (size_t lane = 0; lane < given_.size(); ++lane) add(lane, 1);
    }

    // What number, among those of all lanes, sample `nth` of a lane is: all lanes have given
    // min(nth, given) before it, and those before this lane one more. `nth` may not fall from call
    // to call.
    uint64_t number_of(size_t lane, uint64_t nth) {
        for (; ended_ < shortest_first_.size(); ++ended_) {
            const size_t shortest = shortest_first_[ended_];
            if (given_[shortest] > nth) break;
            given_by_ended_ += given_[shortest];
            add(shortest, -1);
        }
        const uint64_t open = shortest_first_.size() - ended_;
        return given_by_ended_ + nth * open + open_before(lane);
    }

  private:
    // A Fenwick tree of the lanes that have not ended.
    void add(size_t lane, int64_t count) {
        for (size_t at = lane + 1; at < open_.size(); at += at & (~at + 1)) open_[at] += count;
    }
    [[nodiscard]] uint64_t open_before(size_t lane) const {
        int64_t count = 0;
        for (size_t at = lane; at > 0; at -= at & (~at + 1)) count += open_[at];
        return static_cast<uint64_t>(count);
    }

    const std::vector<uint64_t> given_;
    std::vector<size_t> shortest_first_;
    std::vector<int64_t> open_;
    size_t ended_ = 0;  // of shortest_first_
    uint64_t given_by_ended_ = 0;
};

// The readings of a lane that gives `given` of `all` samples.
class LaneReads {
  public:
    LaneReads(uint64_t given, uint64_t all, uint64_t shuffle)
        : given_(given), delay_(std::max<uint64_t>(shuffle, 1) - 1) {
        // The buffer is full before the last one is drawn, as far as there are samples.
        if (given > 0) needed_ = delay_ > all - given ? all : given + delay_;
    }

    [[nodiscard]] uint64_t needed() const { return needed_; }
    // The sample of the lane that can be given when sample number `put` is in the shuffle buffer.
    [[nodiscard]] uint64_t given_after(uint64_t put) const {
        return std::min(put - std::min(put, delay_), given_ - 1);
    }

  private:
    uint64_t given_, delay_, needed_ = 0;
};

}  // namespace

std::vector<ShardRead> reads_of_consumer(const Options& options,
                                         const std::vector<uint32_t>& counts) {
    if (options.epoch_samples != 0)
        throw Error(SHF_E_USAGE, "what is read when is not known with epoch_samples",
                    "do not set epoch_samples");
    Plan plan(options, counts.size(), Idle::allow);
    plan.set_counts(counts);
    const std::vector<uint32_t> lanes = plan.own_lanes();

    std::vector<uint64_t> given(lanes.size());
    std::vector<ShardRead> reads;
    std::vector<size_t> lane_of;
    for (size_t i = 0; i < lanes.size(); ++i) {
        const LaneQuota quota = plan.quota(options.epoch, lanes[i]);
        const auto count_of = [&](uint64_t nth) {
            const uint64_t count = counts[plan.shard(options.epoch, lanes[i], nth)];
            return nth + 1 == quota.shards ? std::min(count, quota.last) : count;
        };
        uint64_t all = 0;
        for (uint64_t nth = 0; nth < quota.shards; ++nth) all += count_of(nth);
        given[i] = std::min(all, quota.samples);
        const LaneReads lane(given[i], all, options.shuffle);
        uint64_t put = 0;
        // What comes after the last sample that is needed is read only to find the end.
        for (uint64_t nth = 0; nth < quota.shards && given[i] > 0; ++nth) {
            if (put >= lane.needed() && lane.needed() < all) break;
            const uint64_t samples = std::min(count_of(nth), lane.needed() - put);
            reads.push_back(
                {.shard = plan.shard(options.epoch, lanes[i], nth),
                 .samples = samples,
                 .first = lane.given_after(put),
                 .last = lane.given_after(put + samples - std::min<uint64_t>(samples, 1))});
            lane_of.push_back(i);
            put += samples;
        }
    }

    // From numbers of the lane to those of all lanes, in ascending order of the former.
    struct Wanted {
        uint64_t nth;
        size_t read;
        uint64_t ShardRead::*number;
    };
    std::vector<Wanted> wanted;
    for (size_t read = 0; read < reads.size(); ++read) {
        wanted.push_back({reads[read].first, read, &ShardRead::first});
        wanted.push_back({reads[read].last, read, &ShardRead::last});
    }
    std::sort(wanted.begin(), wanted.end(),
              [](const Wanted& a, const Wanted& b) { return a.nth < b.nth; });
    const uint64_t of_all = std::accumulate(given.begin(), given.end(), uint64_t{0});
    TakenInTurn taken(std::move(given));
    for (const Wanted& one : wanted)
        reads[one.read].*one.number = taken.number_of(lane_of[one.read], one.nth);

    // Consumers that share lanes take their samples in turn.
    if (plan.shares_lanes()) {
        const uint64_t readers = plan.lane_readers().readers(),
                       place = plan.lane_readers().place(plan.consumer());
        const auto own_before = [&](uint64_t number) {
            return number <= place ? 0 : (number - place - 1) / readers + 1;
        };
        const uint64_t own = own_before(of_all);
        for (ShardRead& read : reads) {
            const uint64_t past = own_before(read.last + 1);
            read.first = std::min(own_before(read.first), own - std::min<uint64_t>(own, 1));
            read.last = std::max(read.first, past - std::min<uint64_t>(past, 1));
        }
    }
    std::stable_sort(reads.begin(), reads.end(),
                     [](const ShardRead& a, const ShardRead& b) { return a.first < b.first; });
    return reads;
}

}  // namespace shf
