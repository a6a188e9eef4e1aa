// Saving and restoring of streams.
#include "core/error.h"
#include "core/options.h"
#include "stream/engine.h"

#define XXH_INLINE_ALL
#include "url/redact.h"

#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shf {

namespace {

// So many samples or bytes are read again and dropped after a restore in the middle of a block,
// rather than that every block pays for a note of where it starts.
constexpr size_t most_handed = 4096;
constexpr uint64_t most_handed_bytes = 1 << 20;

// The last part of a shard's name, by which it is known wherever it is mounted.
std::string_view base_name(std::string_view url) {
    return url.substr(url.find_last_of('/') + 1);
}

uint64_t hash_of(const ShardList& shards) {
    constexpr uint64_t most = 4096;  // of a long list some are enough, evenly spread
    const uint64_t count = std::min(shards.size(), most);
    uint64_t hash = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const auto number =
            static_cast<uint64_t>(static_cast<unsigned __int128>(i) * shards.size() / count);
        const std::string url = redact(shards.at(number));
        const std::string_view name = base_name(url);
        hash = XXH3_64bits_withSeed(name.data(), name.size(), hash);
    }
    return hash;
}

}  // namespace

void Engine::set_lanes(std::vector<std::unique_ptr<Lane>> lanes,
                       std::span<const LaneState* const> states) {
    lanes_ = std::move(lanes);
    turns_ = {};
    over_.clear();
    skip_.assign(lanes_.size(), 0);
    fruitful_epoch_ = shared_.options.epoch;
    for (size_t i = 0; i < lanes_.size(); ++i) {
        if (states.empty()) {
            turns_.add({shared_.options.epoch, 0, i});
            continue;
        }
        fruitful_epoch_ = std::max(fruitful_epoch_, states[i]->epoch);
        skip_[i] = states[i]->skip;
        const Turns::Turn turn{states[i]->epoch, states[i]->taken, i};
        is_over(turn.epoch) ? over_.push_back(turn) : turns_.add(turn);
    }
}

// What of the stream is the same all the time.
StreamState Engine::identity() {
    StreamState state;
    if (mixture_) {
        state.options = order_options(shared_.options, "mix");
        state.options.emplace_back("weights", mixture_->text());
        for (const auto& part : parts_) state.parts.push_back(part->identity());
        return state;
    }
    if (shards_hash_ == 0) shards_hash_ = hash_of(shared_.shards);
    state.options = order_options(shared_.options, "stream");
    state.shards = shared_.shards.size();
    state.shards_hash = shards_hash_;
    state.lanes_in_all = shared_.plan.lanes();
    state.consumers = shared_.plan.consumers();
    state.of = {static_cast<uint32_t>(shared_.plan.consumer())};
    return state;
}

// ---- Saving -------------------------------------------------------------------------------------

// Where the samples stand that are pulled next.
Position Engine::position() {
    Position position;
    position.remaining = remaining_;
    position.mixed = mixed_;
    position.passed = passed_;
    position.skips_own = shared_.plan.shares_lanes() && (skip_.empty() || skips_own_);
    for (const auto& part : parts_) position.parts.push_back(part->position());
    position.lanes.resize(lanes_.size());
    for (const auto& turns : {turns_.all(), std::span<const Turns::Turn>(over_)})
        for (const Turns::Turn& turn : turns) {
            LaneState& state = position.lanes[turn.lane];
            // A lane at its end does not begin an epoch, but a state can.
            if (turn.taken == 0 && is_over(turn.epoch))
                state.lane = lanes_[turn.lane]->number();
            else
                state = lanes_[turn.lane]->state();
            state.epoch = turn.epoch;
            state.taken = turn.taken;
            state.skip = skip_.empty() ? 0 : skip_[turn.lane];
        }
    return position;
}

// At the start of a call of next_block. The sample that waits in pending_ was pulled already: what
// is noted then is the position after it.
void Engine::note_call() {
    last_block_ = 0;
    older_note_.reset();
    if (note_ && note_->handed.size() < most_handed && note_->bytes < most_handed_bytes &&
        !shares_lanes())
        return;
    if (pending_.block) older_note_ = std::move(note_);
    note_ = Note{.position = position(), .handed = {}};
}

void Engine::note_block(const Block& block) {
    for (uint32_t i = older_note_ ? 1 : 0; i < block.count; ++i)
        note_->handed.push_back(place_of(block, i));
    note_->bytes += block.payload_bytes;
    last_block_ = block.count;
}

StreamState Engine::save(uint64_t unread) {
    const uint64_t most = batcher_ ? (batcher_->gave_batch() ? 1 : 0) : last_block_;
    if (unread > most)
        throw Error(SHF_E_USAGE,
                    std::to_string(unread) + " were not used, of " + std::to_string(most),
                    "say how many samples of the block that came last were not used, or whether "
                    "the batch that came last was not");
    StreamState state = identity();
    if (batcher_) {
        state.stand_at(batcher_->position(unread > 0));
        state.columns = batcher_->settled();
        if (state.columns.empty()) state.columns = restored_columns_;
    } else if (unread == 0 && !pending_.block) {
        state.stand_at(position());
    } else {
        const bool none_used = older_note_ && unread == last_block_;
        const Note& note = none_used ? *older_note_ : *note_;
        const size_t used = note.handed.size() - (none_used ? 0 : static_cast<size_t>(unread));
        Position position = note.position;
        for (size_t i = 0; i < used; ++i) position.skip(note.handed[i]);
        state.stand_at(std::move(position));
    }
    return state;
}

// ---- Restoring ----------------------------------------------------------------------------------

// Samples until the end of this consumer, under epoch_samples.
uint64_t Engine::remaining_after(const StreamState& state) const {
    const uint64_t all = state.position.remaining;
    if (all == UINT64_MAX || state.first_stream().is_of(plan().consumer(), plan().consumers()))
        return all;
    // The elements t of the global sequence with t mod C = c, from the first one that nobody had.
    uint64_t total = 0;
    if (__builtin_mul_overflow(shared_.options.epoch_samples, shared_.options.epochs, &total))
        return UINT64_MAX;
    return plan().quota(total) - plan().quota(total - std::min(all, total));
}

// The parts of an even epoch are dealt out when it begins.
void Engine::check_even(const StreamState& state) const {
    const auto& lanes = state.position.lanes;
    if (shared_.options.even == Even::none || state.consumers == shared_.plan.consumers() ||
        std::none_of(lanes.begin(), lanes.end(),
                     [](const LaneState& lane) { return lane.taken + lane.skip > 0; }))
        return;
    throw Error(SHF_E_USAGE,
                "the state was saved in the middle of an epoch by " +
                    plural(state.consumers, "consumer") + ", and these are " +
                    std::to_string(shared_.plan.consumers()) +
                    ": with the option even the rest "
                    "of that epoch cannot be dealt out again",
                "change the number of ranks and workers between epochs, or leave out even");
}

// Lanes that several consumers read, and the samples that are left of epoch_samples, follow from
// the states of all of them.
void Engine::check_whole(const StreamState& state) const {
    const StreamState& first = state.first_stream();
    if (first.is_of_all() || first.is_of(plan().consumer(), plan().consumers()) ||
        (first.sharing().readers() == 1 && state.position.remaining == UINT64_MAX))
        return;
    throw Error(SHF_E_USAGE,
                "the state is that of " + std::to_string(first.of.size()) + " of " +
                    plural(first.consumers, "consumer"),
                "merge the states of all ranks and workers, and restore the result");
}

void Engine::restore(const StreamState& state) {
    if (!untouched())
        throw Error(SHF_E_USAGE, "samples were already taken from this stream",
                    "restore right after opening");
    check_same_run(state, identity());
    Restored restored = prepare(state);
    if (batcher_) batcher_->settle(state.columns);
    apply(std::move(restored));
    restored_columns_ = state.columns;
}

Engine::Restored Engine::prepare(const StreamState& state) {
    Restored restored;
    restored.mixed = state.position.mixed;
    for (size_t i = 0; i < parts_.size(); ++i)
        restored.parts.push_back(about_part(i, [&] { return parts_[i]->prepare(state.parts[i]); }));
    check_whole(state);
    restored.remaining = remaining_after(state);
    if (mixture_) return restored;
    check_even(state);
    for (const uint32_t number : shared_.plan.own_lanes()) {
        if (shared_.plan.shards_of(number) == 0) continue;
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
        LaneClient& client = *this;
        restored.lanes.push_back(std::make_unique<Lane>(shared_, client, *place));
        restored.states.push_back(&*place);
    }
    restored.passed = state.position.passed;
    restored.skips_own = state.position.skips_own;
    return restored;
}

void Engine::apply(Restored restored) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i]->apply(std::move(restored.parts[i]));
    mixed_ = restored.mixed;
    remaining_ = restored.remaining;
    passed_ = restored.passed;
    skips_own_ = restored.skips_own;
    if (!mixture_) set_lanes(std::move(restored.lanes), restored.states);
}

// Drops what the user has had of the samples after the place that was restored, in the order in
// which they were given. Lanes past the last epoch stay where they are. `later` when that would be
// waiting.
Pull Engine::settle() {
    if (skip_.empty()) return Pull::sample;
    if (skips_own_) return settle_own();
    const auto next_turn = [&] {
        std::optional<Turns::Turn> next;
        for (const Turns::Turn& turn : turns_.all())
            if (skip_[turn.lane] > 0 && (!next || turn < *next)) next = turn;
        return next;
    };
    while (const auto turn = next_turn()) {
        shared_.cancel.check();
        // As in end_epoch(): without a sample in a whole epoch this would never end.
        if (turn->epoch > fruitful_epoch_ + 1) throw fewer_samples();
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
        fruitful_epoch_ = std::max(fruitful_epoch_, turn->epoch);
        --skip_[turn->lane];
    }
    if (std::all_of(skip_.begin(), skip_.end(), [](uint64_t skip) { return skip == 0; }))
        skip_.clear();
    return Pull::sample;
}

// Several consumers read the lanes, so that the order says which samples are this one's.
Pull Engine::settle_own() {
    uint64_t left = std::accumulate(skip_.begin(), skip_.end(), uint64_t{0});
    while (left > 0) {
        shared_.cancel.check();
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
