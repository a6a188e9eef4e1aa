#include "order/indexed_order.h"

#include <algorithm>
#include <utility>

namespace shf {

IndexedOrder::IndexedOrder(Plan& plan, const Options& options, uint64_t epoch)
    : plan_(plan), epoch_(epoch), shuffles_(options.shuffle > 1) {
    for (uint64_t number = 0; number < plan.lanes(); ++number) {
        Lane lane(static_cast<uint32_t>(number), options.shuffle);
        uint64_t end = 0;
        for (uint64_t nth = 0; nth < plan.shards_of(lane.number); ++nth) {
            end += *plan.count_of(plan.shard(epoch, lane.number, nth));
            lane.ends.push_back(end);
        }
        if (end == 0) continue;
        lane.buffer.begin(options.seed, epoch, lane.number);
        lanes_.push_back(std::move(lane));
    }
    for (Lane& lane : lanes_) round_.push_back(&lane);
}

void IndexedOrder::begin_round() {
    std::erase_if(round_, [](const Lane* lane) { return lane->taken == lane->samples(); });
    turn_ = 0;
}

uint64_t IndexedOrder::next_of(Lane& lane) const {
    if (!shuffles_) return lane.taken++;
    while (!lane.buffer.full() && lane.put < lane.samples()) lane.buffer.put(lane.put++);
    ++lane.taken;
    return lane.buffer.draw();
}

// The next element: its lane, and which of its samples it is.
std::pair<IndexedOrder::Lane*, uint64_t> IndexedOrder::take() {
    if (turn_ == round_.size()) begin_round();
    Lane* const lane = round_[turn_++];
    ++next_;
    return {lane, next_of(*lane)};
}

bool IndexedOrder::advance(uint64_t t, uint64_t most) {
    for (; most > 0 && next_ < t; --most) take();
    return next_ == t;
}

IndexedOrder::Place IndexedOrder::at(uint64_t t) {
    while (next_ < t) take();
    const auto [lane, number] = take();
    const auto shard = std::upper_bound(lane->ends.begin(), lane->ends.end(), number);
    const auto nth = static_cast<uint64_t>(shard - lane->ends.begin());
    return {plan_.shard(epoch_, lane->number, nth), number - (nth == 0 ? 0 : *(shard - 1))};
}

}  // namespace shf
