#include "order/trail.h"

#include <algorithm>
#include <utility>

namespace shf {

void Trail::begin_epoch() {
    stretches_.clear();
    in_shard_ = false;
}

void Trail::begin_shard(ShardState start) {
    drop_idle(0);
    const bool resumed = start.near_number > start.number;
    near_offset_ = resumed ? start.near_offset : start.offset;
    near_number_ = resumed ? start.near_number : start.number;
    stretches_.push_back({.start = std::move(start)});
    in_shard_ = true;
}

Trail::Stretch* Trail::recall(ShardState start, uint64_t held) {
    start.next = ShardState::over;
    stretches_.push_back({.start = std::move(start), .held = held});
    return &stretches_.back();
}

Trail::Stretch* Trail::hold(uint64_t offset, uint64_t number, uint64_t ordinal) {
    if (splits_ && number > near_number_) {
        near_offset_ = offset;
        near_number_ = number;
    }
    ShardState& start = stretches_.back().start;
    if (splits_ && number - start.number >= longest) {
        // After a restore some are known that come later.
        const auto later = std::upper_bound(start.bad.begin(), start.bad.end(), number);
        std::vector<uint64_t> bad(later, start.bad.end());
        start.bad.erase(later, start.bad.end());
        stretches_.push_back({.start = {.nth = start.nth,
                                        .version = start.version,
                                        .offset = offset,
                                        .number = number,
                                        .ordinal = ordinal,
                                        .bad = std::move(bad)}});
    }
    ++stretches_.back().held;
    return &stretches_.back();
}

void Trail::let_go(Stretch* stretch) {
    --stretch->held;
    drop_idle(in_shard_ ? 1 : 0);
}

void Trail::drop_idle(size_t keep) {
    while (stretches_.size() > keep && stretches_.front().held == 0) stretches_.pop_front();
}

void Trail::move_to(uint64_t offset, uint64_t number) {
    if (!splits_) return;
    ShardState& start = stretches_.back().start;
    start.offset = near_offset_ = offset;
    start.number = near_number_ = number;
    start.bad.clear();
}

std::vector<ShardState> Trail::shards(uint64_t next) const {
    std::vector<ShardState> result;
    for (const Stretch& stretch : stretches_) {
        const bool goes_on = in_shard_ && &stretch == &stretches_.back();
        if (!result.empty() && result.back().nth == stretch.start.nth) {
            auto& bad = result.back().bad;
            bad.insert(bad.end(), stretch.start.bad.begin(), stretch.start.bad.end());
        } else if (stretch.held > 0 || goes_on) {
            result.push_back(stretch.start);
        }
        if (!goes_on) continue;
        result.back().next = next;
        result.back().near_offset = near_offset_;
        result.back().near_number = near_number_;
    }
    return result;
}

std::vector<uint64_t> sample_numbers(const ShardState& shard, std::span<const uint64_t> ordinals) {
    std::vector<uint64_t> numbers;
    numbers.reserve(ordinals.size());
    auto bad = shard.bad.begin();
    uint64_t passed = 0;  // bad ones before it
    for (const uint64_t ordinal : ordinals) {
        const uint64_t good = shard.number + (ordinal - shard.ordinal);
        for (; bad != shard.bad.end() && *bad <= good + passed; ++bad) ++passed;
        numbers.push_back(good + passed);
    }
    return numbers;
}

}  // namespace shf
