#include "feed/fed_lane.h"

#include <new>
#include <utility>

namespace shf {

namespace {

// Where reading resumes. What of the samples that come next the user has had is for those who take
// them.
LaneState place_of_lane(LaneState state) {
    state.skip = state.begun_elements = 0;
    state.waiting_and_given.clear();
    state.begun_later.clear();
    return state;
}

}  // namespace

FedLane::FedLane(LaneContext& context, const LaneState& from, std::function<void()> wake)
    : context_(context),
      number_(from.lane),
      wake_(std::move(wake)),
      received_(place_of_lane(from)),
      before_(received_),
      after_(received_),
      epoch_(from.epoch),
      opened_(from.begun > 0) {}

void FedLane::push(Event event) {
    if (!event.fault) received_ = event.about.after;
    events_.push_back(std::move(event));
    context_.consumer.notify_one();
}

void FedLane::begin_epoch(uint64_t epoch) {
    // Begun again, for the state of a pass that failed at its end.
    if (before_.epoch > epoch) before_ = after_ = LaneState::at_start(number_, epoch);
    epoch_ = epoch;
    epoch_over_ = opened_ = false;
    unopened_.reset();
}

LaneState FedLane::position(uint64_t /*epoch*/, uint64_t /*taken*/) const {
    LaneState state = before_;
    state.skip = given_;
    return state;
}

void FedLane::take_event(Event event) {
    if (event.fault) {
        fault_ = std::move(event.fault);
        throw Error(*fault_);
    }
    LaneFrame& about = event.about;
    if (!event.blocks.empty() && event.blocks[0]->schemas[0]->of_rows && !context_.batched) {
        fault_ = Error(SHF_E_USAGE, "the feed sends rows of batches, and no samples",
                       "take batches of the stream (the option batch), or start the feed without "
                       "decode")
                     .fault();
        throw Error(*fault_);
    }
    opened_ = opened_ || about.opened;
    if (!unopened_) unopened_ = std::move(about.unopened);
    for (size_t i = 0; i < lane_counters.size(); ++i)
        context_.stats.add(lane_counters[i], about.counts[i]);
    after_ = std::move(about.after);
    given_ = 0;
    blocks_.assign(std::make_move_iterator(event.blocks.begin()),
                   std::make_move_iterator(event.blocks.end()));
    next_ = 0;
    skipped_.assign(std::make_move_iterator(about.skipped.begin()),
                    std::make_move_iterator(about.skipped.end()));
    epoch_over_ = event.epoch_end;
    if (!context_.batched)
        for (const BlockRef& block : blocks_)
            for (const StorageRef& storage : block->storages) storage.hand_out();
    count_skips();
    if (blocks_.empty()) end_event();
}

// Those that come before the next sample. Throws Error.
void FedLane::count_skips() {
    while (!skipped_.empty() && skipped_.front().before <= given_) {
        SkippedFault skipped = std::move(skipped_.front());
        skipped_.pop_front();
        context_.fault(std::move(skipped.fault), skipped.whole_shard);
    }
}

// All samples of the event are given; skips behind them are counted before anything else comes.
void FedLane::end_event() {
    before_ = after_;
    for (SkippedFault& skipped : skipped_) skipped.before = 0;
    given_ = 0;
}

// Makes the first of blocks_ the one with the next sample.
Pull FedLane::fetch_block() {
    if (blocks_.empty()) count_skips();
    if (fault_) throw Error(*fault_);
    while (blocks_.empty()) {
        if (epoch_over_) return Pull::epoch_end;
        Event event;
        {
            std::unique_lock lock(context_.mutex);
            const auto has_event = [this] { return !events_.empty(); };
            if (!has_event() && !context_.wait_for_event(
                                    lock, has_event, [] {}, [] { return false; }))
                return Pull::later;
            // Of a later epoch: this one has no more.
            if (!events_.front().fault && events_.front().about.epoch > epoch_)
                return Pull::epoch_end;
            event = std::move(events_.front());
            events_.pop_front();
        }
        taken_.fetch_add(1, std::memory_order_release);
        wake_();
        take_event(std::move(event));
    }
    return Pull::sample;
}

Pull FedLane::pull(Delivery& out) {
    if (!blocks_.empty()) count_skips();
    const Pull pull = fetch_block();
    if (pull != Pull::sample) return pull;
    BlockRef& block = blocks_.front();
    out.index = next_++;
    ++given_;
    if (next_ < block->count) {
        out.block = block->share();
        return Pull::sample;
    }
    out.block = std::move(block);
    blocks_.pop_front();
    next_ = 0;
    if (blocks_.empty()) end_event();
    return Pull::sample;
}

Pull FedLane::pull_block(BlockRef& out, uint64_t most) {
    const Pull pull = fetch_block();
    if (pull != Pull::sample || next_ != 0 || blocks_.front()->count > most) return pull;
    // A skip comes between two samples.
    if (!skipped_.empty() && skipped_.front().before < given_ + blocks_.front()->count) return pull;
    out = std::move(blocks_.front());
    blocks_.pop_front();
    given_ += out->count;
    if (blocks_.empty()) end_event();
    return Pull::sample;
}

}  // namespace shf
