#include "stream/lane_sequence.h"

#include "core/log.h"
#include "core/threads.h"
#include "stream/indexed_lane.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace shf {

namespace {

// The number of threads when the option leaves it open.
Options with_threads(Options options) {
    if (options.threads == 0)
        options.threads = std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, 4);
    return options;
}

}  // namespace

LaneSequence::LaneSequence(std::span<const char* const> urls, const Options& options,
                           std::unique_ptr<LaneProvider> provider)
    : context_(urls, with_threads(options)), provider_(std::move(provider)) {
    if (options.by_index) read_by_index();
    if (options.even != Even::none || options.by_index) {
        auto counts = provider_ ? provider_->counts() : std::nullopt;
        context_.plan.set_counts(counts ? std::move(*counts) : context_.sample_counts());
    }
    if (options.by_index) check_share();
    std::vector<std::unique_ptr<SampleLane>> lanes;
    for (const uint32_t number : context_.plan.own_lanes())
        if (context_.plan.reads(number))
            lanes.push_back(
                provider_ ? provider_->lane(context_, LaneState::at_start(number, options.epoch))
                          : std::make_unique<Lane>(context_, number, options.epoch));
    set_lanes(std::move(lanes), {});
    refuse_second_reading(options.epochs != 1 || options.epoch_samples != 0 || options.resample);
    if (options.by_index)
        context_.stats.set(SHF_STAT_EPOCH_SAMPLES,
                           IndexedShare(context_.dealing(), context_.plan.consumer(), 0).count());
    else if (options.even == Even::none)
        begin_countdown(context_.plan);
    else
        context_.stats.set(SHF_STAT_EPOCH_SAMPLES, context_.plan.even_samples(options.epoch));
}

void LaneSequence::read_by_index() {
    if (provider_)
        throw Error(SHF_E_USAGE, "by_index with a feed, whose servers read their shards",
                    "leave out by_index, or read the shards here");
    provider_ = std::make_unique<IndexedLanes>();
}

// With even, and without a last epoch, every rank needs a sample.
void LaneSequence::check_share() const {
    const Options& options = context_.options;
    const Dealing dealing = context_.dealing();
    const bool too_few = dealing.elements() < options.world_size;
    if (too_few && (options.even != Even::none || context_.endless()))
        throw Error(
            SHF_E_USAGE,
            plural(dealing.samples, "sample") + " for " + plural(options.world_size, "rank"),
            "give more shards, or use fewer ranks");
}

// Standard input can be read once. A list that is longer than this was not written with it in mind.
void LaneSequence::refuse_second_reading(bool again) const {
    constexpr uint64_t longest = 1000;
    uint64_t times = 0;
    for (uint64_t i = 0; i < context_.shards.size() && i < longest; ++i)
        times += context_.shards.at(i) == "-" ? 1 : 0;
    if (times > 1 || (times == 1 && again))
        throw Error(SHF_E_USAGE, "standard input would be read more than once",
                    "give \"-\" once, with epochs=1 and without epoch_samples and resample");
}

void LaneSequence::check_repeats() const {
    refuse_second_reading(true);
    if (!ended_lanes_.empty())
        throw Error(SHF_E_USAGE, "this stream was restored where its last epoch has ended",
                    "mix streams right after opening, and restore the mix");
}

void LaneSequence::check_mixes() const {
    if (context_.options.by_index)
        throw Error(SHF_E_USAGE, "by_index in a mix",
                    "leave it out: which samples of a part a batch of the mix has is drawn");
}

void LaneSequence::repeat() noexcept {
    context_.options.epochs = 0;
    if (provider_) provider_->repeat();
    remaining_ = UINT64_MAX;
}

void LaneSequence::set_lanes(std::vector<std::unique_ptr<SampleLane>> lanes,
                             std::span<const LaneState* const> states) {
    lanes_ = std::move(lanes);
    turns_ = {};
    ended_lanes_.clear();
    skip_.assign(lanes_.size(), 0);
    last_epoch_with_samples_ = context_.options.epoch;
    for (size_t i = 0; i < lanes_.size(); ++i) {
        if (states.empty()) {
            turns_.add({context_.options.epoch, 0, i});
            continue;
        }
        last_epoch_with_samples_ = std::max(last_epoch_with_samples_, states[i]->epoch);
        skip_[i] = states[i]->skip;
        const Turns::Turn turn{states[i]->epoch, states[i]->taken, i};
        context_.is_over(turn.epoch) ? ended_lanes_.push_back(turn) : turns_.add(turn);
    }
}

// ---- Readers ------------------------------------------------------------------------------------

void LaneSequence::start() {
    if (started() || at_end()) return;
    warn_of_sharing();
    if (provider_) return provider_->start(context_, lanes_);
    // Where the first sample needs hardly anything but its lane, it does not wait for the others.
    const auto& first = static_cast<const Lane&>(*lanes_[turns_.front().lane]);
    if (first.starts_near()) context_.only_lane = &first;
    std::vector<Lane*> lanes;
    for (const auto& lane : lanes_) lanes.push_back(static_cast<Lane*>(lane.get()));
    readers_.start(context_, lanes);
}

void LaneSequence::interrupt() noexcept {
    const std::lock_guard lock(context_.mutex);
    context_.consumer.notify_all();
    context_.begin.notify_all();
    for (const auto& lane : lanes_) lane->cancel();
}

void LaneSequence::join() noexcept {
    readers_.join();
    if (provider_) provider_->join();
}

void LaneSequence::wake_consumer() noexcept {
    const std::lock_guard lock(context_.mutex);
    context_.consumer.notify_one();
}

// Once for the program, which opens a stream for every epoch or rank.
void LaneSequence::warn_of_sharing() {
    static std::atomic<bool> said{false};
    if (!shares_lanes() || !context_.options.log || context_.options.log_level < SHF_LOG_WARNING ||
        said.exchange(true))
        return;
    const Plan& plan = context_.plan;
    context_.warn("lanes=" + std::to_string(plan.lanes()) + " is not a multiple of the " +
                  plural(plan.consumers(), "consumer") + ": every lane is read by " +
                  std::to_string(plan.lane_readers().readers()) +
                  " of them, which keep their own samples of it");
}

// ---- Consumer -----------------------------------------------------------------------------------

// The lane has left its epoch; when the others have as well, a shard must have been opened there: a
// mistyped path is no empty epoch, regardless of on_error.
void LaneSequence::end_pass(const SampleLane& lane, uint64_t next) {
    opened_ = opened_ || lane.opened();
    if (!unopened_) unopened_ = lane.unopened();
    if (!turns_.empty() && turns_.front().epoch < next) return;
    const bool opened = std::exchange(opened_, false);
    std::optional<Fault> fault = std::exchange(unopened_, std::nullopt);
    if (opened || !fault) return;
    fault->cause += "; no shard of this pass could be opened";
    throw Error(std::move(*fault));
}

// A lane is at the end of its epoch: it begins the next one, or that was the last.
void LaneSequence::end_epoch(size_t lane) {
    const Turns::Turn turn = turns_.take(lane);
    const uint64_t next = turn.epoch + 1;
    try {
        end_pass(*lanes_[lane], next);
    } catch (const Error&) {
        // A state of the failed stream leads to the same fault: no lane has given anything.
        turns_ = {};
        ended_lanes_.clear();
        for (size_t i = 0; i < lanes_.size(); ++i) {
            lanes_[i]->begin_epoch(turn.epoch);
            turns_.add({turn.epoch, 0, i});
        }
        throw;
    }
    try {
        if (!context_.is_over(next)) lanes_[lane]->begin_epoch(next);
    } catch (const Error&) {
        turns_.add(turn);  // likewise
        throw;
    }
    if (context_.is_over(next)) return ended_lanes_.push_back({next, 0, lane});
    turns_.add({next, 0, lane});
    // Every lane has been through a whole epoch without a sample: that would never end.
    if (context_.endless() && turns_.front().epoch > last_epoch_with_samples_ + 1)
        throw Error(SHF_E_FORMAT, "no sample in a whole epoch",
                    "check the shards, and what fields, select_keys and slice leave of them");
}

Pull LaneSequence::pull(Delivery& out, const Wait& wait) {
    context_.wait = wait;
    if (!at_end() && drop_delivered() == Pull::later) return Pull::later;
    size_t lane = 0;
    return pull_own(out, lane);
}

// The next sample that is for this consumer, and the lane that it came through.
Pull LaneSequence::pull_own(Delivery& out, size_t& lane) {
    const bool shares = shares_lanes();
    while (!at_end()) {
        lane = turns_.front().lane;
        const Pull pull = lanes_[lane]->pull(out);
        if (context_.only_lane) {  // only this thread changes it
            const std::lock_guard lock(context_.mutex);
            context_.begin_all();
        }
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end) {
            end_epoch(lane);
            continue;
        }
        last_epoch_with_samples_ = std::max(last_epoch_with_samples_, turns_.front().epoch);
        turns_.took();
        if (!shares || context_.plan.owns(passed_++)) return pull;
        out = {};
    }
    return Pull::epoch_end;
}

Pull LaneSequence::pull_block(BlockRef& out, uint64_t most, const Wait& wait) {
    if (!gives_whole_blocks()) return Pull::sample;
    context_.wait = wait;
    if (!at_end() && drop_delivered() == Pull::later) return Pull::later;
    while (!at_end()) {
        const Pull pull = lanes_[0]->pull_block(out, most);
        if (pull == Pull::sample) {
            last_epoch_with_samples_ = std::max(last_epoch_with_samples_, turns_.front().epoch);
            if (out) turns_.took(out->count);
        }
        if (pull != Pull::epoch_end) return pull;
        end_epoch(0);
    }
    return Pull::epoch_end;
}

}  // namespace shf
