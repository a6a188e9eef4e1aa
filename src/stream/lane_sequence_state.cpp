// The position of a LaneSequence: saving, restoring, and dropping what the user has had.
#include "stream/lane_sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shf {

StreamState LaneSequence::identity() {
    StreamState state;
    if (shards_hash_ == 0) shards_hash_ = hash_of_names(context_.shards);
    state.options = order_options(context_.options, "stream");
    state.shards = context_.shards.size();
    state.shards_hash = shards_hash_;
    state.lanes_in_all = context_.plan.lanes();
    state.consumers = context_.plan.consumers();
    state.of = {static_cast<uint32_t>(context_.plan.consumer())};
    return state;
}

Position LaneSequence::position() {
    Position position;
    position.remaining = remaining_;
    position.passed = passed_;
    position.skips_own = context_.plan.shares_lanes() && (skip_.empty() || skips_own_);
    position.lanes.resize(lanes_.size());
    for (const auto& turns : {turns_.all(), std::span<const Turns::Turn>(ended_lanes_)})
        for (const Turns::Turn& turn : turns) {
            LaneState& state = position.lanes[turn.lane];
            // A lane at its end does not begin an epoch, but a state can.
            if (turn.taken == 0 && context_.is_over(turn.epoch)) {
                state.lane = lanes_[turn.lane]->number();
                state.epoch = turn.epoch;
            } else {
                state = lanes_[turn.lane]->position(turn.epoch, turn.taken);
            }
            state.skip += skip_.empty() ? 0 : skip_[turn.lane];
        }
    return position;
}

// The parts of an even epoch are dealt out when it begins.
void LaneSequence::check_even(const StreamState& state) const {
    const auto& lanes = state.position.lanes;
    if (context_.options.even == Even::none || state.consumers == context_.plan.consumers() ||
        std::none_of(lanes.begin(), lanes.end(),
                     [](const LaneState& lane) { return lane.taken + lane.skip > 0; }))
        return;
    throw Error(SHF_E_USAGE,
                "the state was saved in the middle of an epoch by " +
                    plural(state.consumers, "consumer") + ", and these are " +
                    std::to_string(context_.plan.consumers()) +
                    ": with the option even the rest "
                    "of that epoch cannot be dealt out again",
                "change the number of ranks and workers between epochs, or leave out even");
}

LaneSequence::Restored LaneSequence::prepare(const StreamState& state) {
    Restored restored;
    restored.remaining = remaining_after(state, context_.plan);
    check_even(state);
    for (const uint32_t number : context_.plan.own_lanes()) {
        if (context_.plan.shards_of(number) == 0) continue;
        const auto& all = state.position.lanes;
        const auto place =
            std::lower_bound(all.begin(), all.end(), number,
                             [](const LaneState& lane, uint32_t n) { return lane.lane < n; });
        if (place == all.end() || place->lane != number)
            throw Error(SHF_E_USAGE,
                        "the state has nothing of lane " + std::to_string(number) +
                            (state.is_of_all() ? ""
                                               : ", as that of " + std::to_string(state.of.size()) +
                                                     " of " + plural(state.consumers, "consumer")),
                        "merge the states of all ranks and workers, and restore the result");
        restored.lanes.push_back(remote_ ? remote_->lane(context_, *place)
                                         : std::make_unique<Lane>(context_, *place));
        restored.states.push_back(&*place);
    }
    restored.passed = state.position.passed;
    restored.skips_own = state.position.skips_own;
    return restored;
}

void LaneSequence::apply(Restored restored) {
    remaining_ = restored.remaining;
    passed_ = restored.passed;
    skips_own_ = restored.skips_own;
    set_lanes(std::move(restored.lanes), restored.states);
}

void LaneSequence::drop_delivered_shared(const Wait& wait) {
    context_.wait = wait;
    if (shares_lanes() && !at_end()) (void)drop_delivered();
}

// Drops what the user has had of the samples after the place that was restored, in the order in
// which they were given. Lanes past the last epoch stay where they are. `later` when that would be
// waiting.
Pull LaneSequence::drop_delivered() {
    if (skip_.empty()) return Pull::sample;
    if (skips_own_) return drop_delivered_own();
    const auto next_turn = [&] {
        std::optional<Turns::Turn> next;
        for (const Turns::Turn& turn : turns_.all())
            if (skip_[turn.lane] > 0 && (!next || turn < *next)) next = turn;
        return next;
    };
    while (const auto turn = next_turn()) {
        context_.cancel.check();
        // As in end_epoch(): without a sample in a whole epoch this would never end.
        if (turn->epoch > last_epoch_with_samples_ + 1) throw fewer_samples();
        Delivery dropped;
        const Pull pull = lanes_[turn->lane]->pull(dropped);
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end) {
            const size_t before = turns_.all().size();
            end_epoch(turn->lane);
            if (turns_.all().size() < before) throw fewer_samples();
            continue;
        }
        turns_.take(turn->lane);
        turns_.add({turn->epoch, turn->taken + 1, turn->lane});
        last_epoch_with_samples_ = std::max(last_epoch_with_samples_, turn->epoch);
        --skip_[turn->lane];
    }
    if (std::all_of(skip_.begin(), skip_.end(), [](uint64_t skip) { return skip == 0; }))
        skip_.clear();
    return Pull::sample;
}

// Several consumers read the lanes, so that the order says which samples are this one's.
Pull LaneSequence::drop_delivered_own() {
    uint64_t left = std::accumulate(skip_.begin(), skip_.end(), uint64_t{0});
    while (left > 0) {
        context_.cancel.check();
        Delivery dropped;
        size_t lane = 0;
        const Pull pull = pull_own(dropped, lane);
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end || skip_[lane] == 0) throw fewer_samples();
        --skip_[lane];
        --left;
    }
    skip_.clear();
    return Pull::sample;
}

}  // namespace shf
