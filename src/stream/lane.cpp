#include "stream/lane.h"

#include "core/options.h"
#include "index/index_store.h"

#include <new>
#include <numeric>

namespace shf {

Lane::Lane(LaneContext& context, uint32_t number, uint64_t epoch)
    : context_(context),
      number_(number),
      most_runs_(16 + context.options.threads),
      given_epoch_(epoch),
      resumed_epoch_(epoch),
      buffer_(context.options.shuffle),
      resume_points_(!context.filter.counts()) {
    begin_epoch(epoch);
}

// ---- Restoring ----------------------------------------------------------------------------------

Lane::Lane(LaneContext& context, const LaneState& state) : Lane(context, state.lane, state.epoch) {
    const LaneQuota quota = context.plan.quota(state.epoch, state.lane);
    if (state.begun > quota.shards || state.epoch < context.options.epoch ||
        state.taken > quota.samples || state.base > std::min(state.taken, state.put))
        throw Error(SHF_E_FORMAT, "the state has a lane where no lane can stand", state_help);
    opened_ = state.begun > 0;
    put_ = state.put;
    base_ = state.base;
    const ShuffleHistory history = history_of(state);
    closed_ = shuffles() && history.draws_while_full() < history.taken;
    begun_ = given_nth_ = state.begun;
    if (takes_ != LaneQuota::all) takes_ -= state.taken;
    for (const ShardState& shard : state.shards) {
        if (shard.nth >= state.begun || (!resumed_.empty() && !resumed_.back().state.is_over()))
            throw Error(SHF_E_FORMAT, "the state has a shard in the wrong place", state_help);
        resumed_.push_back({.state = shard, .resume = {}, .ordinals = {}});
    }
    if (shuffles()) restore_buffer(state);
    for (ResumedShard& resumed : resumed_) {
        const ShardState& shard = resumed.state;
        resumed.resume = std::make_shared<const Resume>(
            Resume{.position = shard.position,
                   .wanted = sample_numbers(shard, resumed.ordinals),
                   .end = shard.nth + 1 == quota.shards ? quota.last : Resume::never});
    }
    if (from_ && has_indexes()) refill_by_index();
    if (state.begun == quota.shards) {
        given_nth_ = 0;
        ++given_epoch_;
        epoch_over_ = resumed_.empty();
    }
}

ShuffleHistory Lane::history_of(const LaneState& state) const {
    return {.size = context_.options.shuffle,
            .put = state.put - state.base,
            .taken = state.taken - state.base,
            .closed = state.closed};
}

// Finds out what was in the buffer. It is read again before anything else, unless there is
// an IndexedRefill.
void Lane::restore_buffer(const LaneState& state) {
    Random random = buffer_.random();
    random.set_drawn(state.drawn);
    std::vector<uint64_t> ordinals = shuffle_slots(history_of(state), random);
    for (uint64_t& ordinal : ordinals) ordinal += state.base;
    slots_.resize(ordinals.size());
    std::iota(slots_.begin(), slots_.end(), size_t{0});
    std::sort(slots_.begin(), slots_.end(),
              [&](size_t a, size_t b) { return ordinals[a] < ordinals[b]; });
    auto shard = resumed_.begin();
    for (const size_t slot : slots_) {
        const uint64_t ordinal = ordinals[slot];
        while (shard != resumed_.end() && shard + 1 != resumed_.end() &&
               (shard + 1)->state.ordinal <= ordinal)
            ++shard;
        if (shard == resumed_.end() || shard->state.ordinal > ordinal)
            throw Error(SHF_E_FORMAT, "the state lacks a shard of its shuffle buffer", state_help);
        shard->ordinals.push_back(ordinal);
    }
    refill_.resize(slots_.size());
    from_ = state;
    // What of the samples that come next the user has had is for those who take them.
    from_->begun_elements = 0;
    from_->waiting_and_given.clear();
    from_->begun_later.clear();
    if (slots_.empty()) (void)refill();
}

// Of all shards with samples in the buffer, so that each of them can be read alone. What has an
// index has no bad samples.
bool Lane::has_indexes() const {
    if (slots_.empty() || context_.filter.counts()) return false;
    return std::all_of(resumed_.begin(), resumed_.end(), [&](const ResumedShard& resumed) {
        if (resumed.ordinals.empty()) return true;
        return resumed.state.bad.empty() && has_index_of(resumed.state.nth);
    });
}

bool Lane::has_index_of(uint64_t nth) const {
    const uint64_t shard = context_.plan.shard(resumed_epoch_, number_, nth);
    return has_index(context_.shards.at(shard), context_.options);
}

bool Lane::starts_near() const {
    if (shuffles()) return indexed_refill_ != nullptr;
    return !epoch_over_ && has_index_of(resumed_.empty() ? begun_ : resumed_[0].state.nth);
}

// Leaves to the readers only what comes after the buffer.
void Lane::refill_by_index() {
    std::vector<Held> items(slots_.size());
    std::vector<IndexedRefill::Shard> shards;
    for (const ResumedShard& resumed : resumed_) {
        const size_t count = resumed.ordinals.size();
        if (count == 0) continue;
        ResumePoints::Point* const point = resume_points_.restore(resumed.state, count);
        for (size_t i = 0; i < count; ++i, ++to_refill_)
            items[slots_[to_refill_]] = {.block = {}, .point = point, .place = to_refill_};
        shards.push_back({.nth = resumed.state.nth, .resume = *resumed.resume});
        shards.back().resume.position.next = shards.back().resume.end = Resume::never;
    }
    indexed_refill_ =
        std::make_shared<IndexedRefill>(context_, resumed_epoch_, number_, std::move(shards));
    buffer_.restore(from_->drawn, std::move(items));
    from_.reset();
    slots_.clear();
    refill_.clear();
    std::erase_if(resumed_, [](const ResumedShard& resumed) { return resumed.state.is_over(); });
    for (ResumedShard& resumed : resumed_) {
        resumed.ordinals.clear();
        Resume rest = *resumed.resume;
        rest.wanted.clear();
        rest.position.from = resumed.state.near;
        resumed.resume = std::make_shared<const Resume>(std::move(rest));
    }
}

void Lane::end_indexed_refill() {
    std::shared_ptr<IndexedRefill> over;
    {
        const std::lock_guard lock(context_.mutex);
        over.swap(indexed_refill_);
    }
    over->cancel();
    to_refill_ = 0;
}

// Reads into the buffer what was in it.
Pull Lane::refill() {
    while (refilling()) {
        const Pull pull = fetch_block();  // of one sample
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end) throw fewer_samples();
        refill_[slots_[refilled_]] = hold();
        ++refilled_;
    }
    buffer_.restore(from_->drawn, std::move(refill_));
    from_.reset();
    return Pull::sample;
}

LaneState Lane::position(uint64_t epoch, uint64_t taken) const {
    LaneState state = from_ ? *from_ : state_without_refill();
    state.epoch = epoch;
    state.taken = taken;
    state.skip = 0;
    return state;
}

LaneState Lane::state_without_refill() const {
    LaneState state;
    state.lane = number_;
    state.closed = epoch_over_ || fault_ || closed_;
    state.drawn = shuffles() ? buffer_.random().drawn() : 0;
    state.put = put_;
    state.base = base_;
    state.begun = begun_;
    // Without a shuffle buffer there may be samples in block_ that were not taken.
    const uint32_t left = block_ ? block_->count - next_ : 0;
    state.shards = resume_points_.shards(arrived_ - left);
    if (left > 0 && resume_points_.splits()) {
        ShardState& shard = state.shards.back();
        shard.position.from = shard.near = {block_->offset[next_], arrived_ - left};
    }
    for (size_t i = begun_resumed_; i < resumed_.size(); ++i) {
        // Samples of it that are in the buffer start where it does.
        if (!state.shards.empty() && state.shards.back().nth == resumed_[i].state.nth)
            state.shards.pop_back();
        state.shards.push_back(resumed_[i].state);
    }
    return state;
}

// ---- Readers ------------------------------------------------------------------------------------

bool Lane::all_given() const {
    return given_resumed_ == resumed_.size() && context_.is_over(given_epoch_);
}

void Lane::cancel() {
    for (const auto& run : runs_) run->cancel();
    if (indexed_refill_) indexed_refill_->cancel();
    readers.notify_all();
}

std::shared_ptr<ShardRun> Lane::next_run() {
    if (all_given() || runs_.size() >= most_runs_) return nullptr;
    if (given_resumed_ < resumed_.size()) {
        const ResumedShard& resumed = resumed_[given_resumed_];
        const bool last = given_resumed_ + 1 == resumed_.size() && given_epoch_ > resumed_epoch_;
        runs_.push_back(std::make_shared<ShardRun>(context_, resumed_epoch_, number_,
                                                   resumed.state.nth, last, resumed.resume));
        ++given_resumed_;  // after the run exists: else another reader would start the next shard
    } else {
        // An epoch in which this lane gives nothing has no run.
        while (!given_quota_ || given_quota_->shards == 0) {
            if (given_quota_) ++given_epoch_;
            if (all_given()) return nullptr;
            given_quota_ = context_.plan.quota(given_epoch_, number_);
        }
        const bool last = given_nth_ + 1 == given_quota_->shards;
        std::shared_ptr<const Resume> part;
        if (last && given_quota_->last != LaneQuota::all)
            part = std::make_shared<const Resume>(
                Resume{.position = {}, .wanted = {}, .end = given_quota_->last});
        runs_.push_back(
            std::make_shared<ShardRun>(context_, given_epoch_, number_, given_nth_, last, part));
        given_nth_ = last ? 0 : given_nth_ + 1;
        if (last) {
            ++given_epoch_;
            given_quota_.reset();
        }
    }
    if (runs_.size() == 1) runs_.front()->become_head();
    return runs_.back();
}

// ---- Consumer -----------------------------------------------------------------------------------

void Lane::begin_epoch(uint64_t epoch) {
    const LaneQuota quota = context_.plan.quota(epoch, number_);
    epoch_ = epoch;
    takes_ = quota.samples;
    epoch_over_ = quota.shards == 0;
    opened_ = closed_ = false;
    unopened_.reset();
    buffer_.begin(context_.options.seed, epoch, number_);
    resume_points_.begin_epoch();
    begun_ = put_ = base_ = 0;
}

const Lane::ResumedShard* Lane::resumed_run() const {
    return in_resumed_ ? &resumed_[begun_resumed_ - 1] : nullptr;
}

void Lane::begin_run(const ShardRun& run) {
    in_run_ = true;
    in_resumed_ = begun_resumed_ < resumed_.size();
    wanted_again_ = 0;
    if (in_resumed_) {
        ShardState start = resumed_[begun_resumed_++].state;
        arrived_ = start.position.next;
        start.position.next = ShardState::over;
        // A run that could not open the shard, or met another version, does not say which is
        // wanted.
        if (start.position.version == 0) start.position.version = run.version();
        resume_points_.begin_shard(std::move(start));
    } else {
        arrived_ = 0;
        begun_ = run.nth() + 1;
        resume_points_.begin_shard(
            {.nth = run.nth(),
             .position = {.from = {}, .next = ShardState::over, .version = run.version()},
             .ordinal = put_,
             .bad = {},
             .near = {}});
    }
}

void Lane::end_run() {
    if (const ResumedShard* resumed = resumed_run();
        resumed && wanted_again_ < resumed->resume->wanted.size())
        throw Error(SHF_E_CHANGED, "a shard has fewer samples than when the state was saved",
                    "give the shards that it was saved with, or start the epoch again");
    resume_points_.end_shard();
    in_run_ = in_resumed_ = false;
    epoch_over_ = last_of_epoch_;
}

void Lane::take_event(ShardRun::Event event) {
    if (!event.warning.empty()) context_.warn(std::move(event.warning));
    if (event.block) {
        opened_ = true;
        block_ = std::move(event.block);
        next_ = 0;
        if (shuffles()) return;
        arrived_ += block_->count;
        resume_points_.move_to({block_->offset[block_->count - 1], arrived_ - 1});
        hand_out(*block_);
    } else if (event.fault) {
        // What is not as it was when the state was saved is never skipped.
        if (in_resumed_ && (refilling() || event.fault->code == SHF_E_CHANGED))
            throw Error(*event.fault);
        if (event.end && !event.opened && !unopened_) unopened_ = *event.fault;
        context_.fault(std::move(*event.fault), event.end);
        if (!event.end && event.counted) resume_points_.bad(arrived_++);
    } else if (event.end &&
               !(in_resumed_ && resumed_run()->resume->position.next == Resume::never)) {
        context_.stats.add_alone(SHF_STAT_SHARDS, 1);
    }
    if (!event.end) return;
    opened_ = opened_ || event.opened;
    end_run();
}

// Waits until the shard that comes next has an event. context.mutex is held through `lock`. False:
// the caller does not want to wait. Throws Error: TIMEOUT, CANCELLED.
bool Lane::wait_for_event(std::unique_lock<std::mutex>& lock) {
    if (context_.only_lane && context_.only_lane != this) context_.begin_all();
    return context_.wait_for_event(
        lock, [this] { return head() && head()->has_event(); },
        [this] {
            context_.wanted = head();  // NULL until a reader has taken the shard
            if (head()) head()->want();
        },
        [this] { return head() != context_.wanted; });
}

// Makes block_ the block with the next sample.
Pull Lane::fetch_block() {
    while (!block_ || next_ == block_->count) {
        block_.reset();
        if (epoch_over_) return Pull::epoch_end;
        if (events_.empty()) {
            std::unique_lock lock(context_.mutex);
            if ((!head() || !head()->has_event()) && !wait_for_event(lock)) return Pull::later;
            last_of_epoch_ = head()->last_of_epoch();
            if (!in_run_) begin_run(*head());
            head()->take_events(events_);
            if (events_.back().end) {
                runs_.pop_front();
                if (!runs_.empty()) runs_.front()->become_head();
                readers.notify_one();
            }
        }
        ShardRun::Event event = std::move(events_.front());
        events_.pop_front();
        take_event(std::move(event));
    }
    return Pull::sample;
}

void Lane::hand_out(const Block& block) const {
    if (context_.batched) return;  // until it is decoded
    for (const StorageRef& storage : block.storages) storage.hand_out();
    context_.wake_readers();
}

Pull Lane::pull_in_order(Delivery& out) {
    const Pull pull = fetch_block();
    if (pull != Pull::sample) return pull;
    if (limited()) --takes_;
    out.index = next_++;
    if (next_ == block_->count) {
        out.block = std::move(block_);
    } else {
        out.block = block_->share();
    }
    return Pull::sample;
}

Pull Lane::pull_block(BlockRef& out, uint64_t most) {
    if (limited()) {
        if (takes_ == 0) return abandon_rest();
        most = std::min(most, takes_);
    }
    const Pull pull = fetch_block();
    if (pull == Pull::sample && next_ == 0 && block_->count <= most) {
        out = std::move(block_);
        if (limited()) takes_ -= out->count;
    }
    return pull;
}

// Takes block_, of one sample, into the shuffle buffer.
Lane::Held Lane::hold() {
    uint64_t number = arrived_, ordinal = put_;
    const ResumedShard* resumed = resumed_run();
    if (resumed && wanted_again_ < resumed->ordinals.size()) {
        number = resumed->resume->wanted[wanted_again_];
        ordinal = resumed->ordinals[wanted_again_++];
    } else {
        ++arrived_;
        ++put_;
    }
    const uint64_t bytes = block_->memory();
    const uint64_t all = context_.shuffle_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    Held held{std::move(block_), nullptr};
    held.point = resume_points_.hold({held.block->offset[0], number}, ordinal);
    if (all > context_.options.memory) throw context_.shuffle_too_large();
    return held;
}

// One more sample for the shuffle buffer. A fault waits until the samples before it are gone.
Pull Lane::fill() {
    if (fault_) return Pull::epoch_end;
    try {
        const Pull pull = fetch_block();  // of one sample
        if (pull != Pull::sample) return pull;
    } catch (const Error& error) {
        if (buffer_.empty() || error.code() == SHF_E_TIMEOUT || error.code() == SHF_E_CANCELLED)
            throw;
        fault_ = error.fault();
        return Pull::epoch_end;
    }
    buffer_.put(hold());
    return Pull::sample;
}

Pull Lane::pull(Delivery& out) {
    if (limited() && takes_ == 0) return abandon_rest();
    if (!shuffles()) return pull_in_order(out);
    if (from_) {
        if (refill() == Pull::later) return Pull::later;
    }
    if (takes_ == 0) return give_up_rest();
    if (closed_ && buffer_.empty()) {
        closed_ = false;
        base_ = put_;
    }
    while (!closed_ && !buffer_.full()) {
        const Pull pull = fill();
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end) break;
    }
    if (buffer_.empty()) {
        if (fault_) throw Error(*fault_);
        return Pull::epoch_end;
    }
    if (indexed_refill_) {
        // Before it is drawn: when it cannot be read, the position of the lane is unchanged.
        if (Held& next = buffer_.next(); !next.block) {
            next.block = indexed_refill_->take(next.place);
            if (--to_refill_ == 0) end_indexed_refill();
        }
    }
    if (takes_ != LaneQuota::all) --takes_;
    Held held = buffer_.draw();
    resume_points_.let_go(held.point);
    out.block = std::move(held.block);
    out.index = 0;
    context_.shuffle_bytes.fetch_sub(out.block->memory(), std::memory_order_relaxed);
    hand_out(*out.block);
    return Pull::sample;
}

// The lane has given its quota of an even epoch, and reads its last shard to the end: what is still
// in the shuffle buffer is dropped.
Pull Lane::give_up_rest() {
    for (Pull pull = fetch_block(); pull != Pull::epoch_end; pull = fetch_block()) {
        if (pull == Pull::later) return pull;
        block_.reset();
    }
    drop_buffer();
    return Pull::epoch_end;
}

// The lane has given its part of the limit. Its readers continue with the next epoch.
Pull Lane::abandon_rest() {
    std::deque<ShardRun::Event> unwanted = std::move(events_);
    events_.clear();
    block_.reset();
    {
        const std::lock_guard lock(context_.mutex);
        while (!runs_.empty() && runs_.front()->epoch() == epoch_) {
            runs_.front()->abandon(unwanted);
            runs_.pop_front();
        }
        if (given_epoch_ == epoch_) {
            ++given_epoch_;
            given_nth_ = 0;
            given_quota_.reset();
        }
        given_resumed_ = resumed_.size();  // they are of this epoch, or of one before
        if (!runs_.empty()) runs_.front()->become_head();
        readers.notify_all();
    }
    if (in_run_) resume_points_.end_shard();
    in_run_ = in_resumed_ = false;
    begun_resumed_ = resumed_.size();
    epoch_over_ = true;
    drop_buffer();
    return Pull::epoch_end;
}

void Lane::drop_buffer() {
    if (indexed_refill_) end_indexed_refill();
    const auto drop = [&](const Held& held) {
        resume_points_.let_go(held.point);
        if (held.block)
            context_.shuffle_bytes.fetch_sub(held.block->memory(), std::memory_order_relaxed);
    };
    while (!buffer_.empty()) drop(buffer_.draw());
    for (const Held& held : refill_)
        if (held.block) drop(held);
    refill_.clear();
    slots_.clear();
    refilled_ = 0;
    from_.reset();
    fault_.reset();
    context_.wake_readers();
}

}  // namespace shf
