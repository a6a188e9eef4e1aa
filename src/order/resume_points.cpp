#include "order/resume_points.h"

#include <algorithm>
#include <utility>

namespace shf {

void ResumePoints::begin_epoch() {
    points_.clear();
    in_shard_ = false;
}

void ResumePoints::begin_shard(ShardState start) {
    drop_idle(0);
    const SampleStart from = start.position.from;
    near_ = start.near.number > from.number ? start.near : from;
    points_.push_back({.start = std::move(start)});
    in_shard_ = true;
}

ResumePoints::Point* ResumePoints::restore(ShardState start, uint64_t held) {
    start.position.next = ShardState::over;
    points_.push_back({.start = std::move(start), .held = held});
    return &points_.back();
}

ResumePoints::Point* ResumePoints::hold(SampleStart sample, uint64_t ordinal) {
    if (splits_ && sample.number > near_.number) near_ = sample;
    ShardState& start = points_.back().start;
    const ShardPosition& position = start.position;
    if (splits_ && sample.number - position.from.number >= samples_per_point) {
        // After a restore some are known that come later.
        const auto later = std::upper_bound(start.bad.begin(), start.bad.end(), sample.number);
        std::vector<uint64_t> bad(later, start.bad.end());
        start.bad.erase(later, start.bad.end());
        points_.push_back({.start = {.nth = start.nth,
                                     .position = {.from = sample,
                                                  .next = ShardState::over,
                                                  .version = position.version},
                                     .ordinal = ordinal,
                                     .bad = std::move(bad),
                                     .near = {}}});
    }
    ++points_.back().held;
    return &points_.back();
}

void ResumePoints::let_go(Point* point) {
    --point->held;
    drop_idle(in_shard_ ? 1 : 0);
}

void ResumePoints::drop_idle(size_t keep) {
    while (points_.size() > keep && points_.front().held == 0) points_.pop_front();
}

void ResumePoints::move_to(SampleStart sample) {
    if (!splits_) return;
    ShardState& start = points_.back().start;
    start.position.from = near_ = sample;
    start.bad.clear();
}

std::vector<ShardState> ResumePoints::shards(uint64_t next) const {
    std::vector<ShardState> result;
    for (const Point& point : points_) {
        const bool unfinished = in_shard_ && &point == &points_.back();
        if (!result.empty() && result.back().nth == point.start.nth) {
            auto& bad = result.back().bad;
            bad.insert(bad.end(), point.start.bad.begin(), point.start.bad.end());
        } else if (point.held > 0 || unfinished) {
            result.push_back(point.start);
        }
        if (!unfinished) continue;
        result.back().position.next = next;
        result.back().near = near_;
    }
    return result;
}

std::vector<uint64_t> sample_numbers(const ShardState& shard, std::span<const uint64_t> ordinals) {
    std::vector<uint64_t> numbers;
    numbers.reserve(ordinals.size());
    auto bad = shard.bad.begin();
    uint64_t passed = 0;  // bad ones before it
    for (const uint64_t ordinal : ordinals) {
        const uint64_t good = shard.position.from.number + (ordinal - shard.ordinal);
        for (; bad != shard.bad.end() && *bad <= good + passed; ++bad) ++passed;
        numbers.push_back(good + passed);
    }
    return numbers;
}

}  // namespace shf
