// The position of a LaneSequence: saving, restoring, and dropping what the user has had.
#include "stream/lane_sequence.h"

#include "url/redact.h"
#include "url/scheme.h"

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
    if (context_.options.by_index)
        state.set_dealing(context_.dealing(),
                          skipped_before_ || context_.stats.get(SHF_STAT_SKIPPED_SAMPLES) > 0);
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
    if (context_.options.even == Even::none || context_.options.by_index ||
        state.consumers == context_.plan.consumers() ||
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

// The position of this consumer: that of the same consumer in the state where samples are dealt out
// as they were, else the one that follows from the positions of all.
LaneState LaneSequence::indexed_state(const StreamState& state) const {
    const auto consumer = static_cast<uint32_t>(context_.plan.consumer());
    const Dealing now = context_.dealing();
    const Dealing then = state.dealing(now);
    std::vector<LaneState> lanes = state.position.lanes;
    const bool is_same = then == now;
    // What is still to be dropped does not count samples that were left out among it.
    if (!is_same && state.has_skipped())
        throw Error(SHF_E_USAGE,
                    "samples were skipped in the run of this state, so that it is good for its own "
                    "ranks and workers alone",
                    "open the stream with the ranks, workers and batch that it was saved with, or "
                    "restore a state of the start of an epoch");
    if (!state.has_skipped())
        for (LaneState& lane : lanes) lane = without_skip(then, lane);
    if (is_same)
        for (const LaneState& lane : lanes)
            if (lane.lane == consumer) return lane;
    if (lanes.size() < state.consumers)
        throw Error(SHF_E_USAGE,
                    "the state is that of " + std::to_string(lanes.size()) + " of " +
                        plural(state.consumers, "consumer") +
                        (is_same ? "" : ", and samples were dealt out in another way"),
                    "merge the states of all ranks and workers, and restore the result");
    const auto [epoch, gone] = elements_gone(then, lanes);
    // Dealt out to more ranks, the rest of the epoch may be too little for each to have some of it.
    if (gone >= now.elements()) return LaneState::at_start(consumer, epoch + 1);
    LaneState own = LaneState::at_start(consumer, epoch);
    own.base = gone;
    return own;
}

// Messages that were read are gone: nothing can read up to the position again.
void LaneSequence::check_messages(const StreamState& state) const {
    const auto& lanes = state.position.lanes;
    if (!context_.shards.has_messages() ||
        std::all_of(lanes.begin(), lanes.end(),
                    [](const LaneState& lane) { return lane.taken + lane.skip == 0; }))
        return;
    for (uint64_t i = 0; i < context_.shards.size(); ++i)
        if (const std::string url = context_.shards.at(i); is_message_url(url))
            throw Error(SHF_E_USAGE,
                        "the state is of the middle of messages, which cannot be read again: " +
                            redact(url),
                        "restore a state of the start of an epoch, or read shards");
}

LaneSequence::Restored LaneSequence::prepare(const StreamState& state) {
    Restored restored;
    restored.skipped = state.by_index() && state.has_skipped();
    restored.remaining = remaining_after(state, context_.plan);
    check_even(state);
    check_messages(state);
    if (context_.options.by_index) {
        restored.indexed = std::make_unique<LaneState>(indexed_state(state));
        restored.lanes.push_back(provider_->lane(context_, *restored.indexed));
        restored.states.push_back(restored.indexed.get());
        return restored;
    }
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
        restored.lanes.push_back(provider_ ? provider_->lane(context_, *place)
                                           : std::make_unique<Lane>(context_, *place));
        restored.states.push_back(&*place);
    }
    restored.passed = state.position.passed;
    restored.skips_own = state.position.skips_own;
    return restored;
}

void LaneSequence::apply(Restored restored) {
    remaining_ = restored.remaining;
    skipped_before_ = restored.skipped;
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
