#include "stream/lane.h"

#include "core/options.h"

namespace shf {

Lane::Lane(Shared& shared, LaneClient& client, uint32_t number)
    : shared_(shared),
      client_(client),
      number_(number),
      shards_(shared.plan.shards_of(number)),
      most_runs_(16 + shared.options.threads),
      given_epoch_(shared.options.epoch),
      buffer_(shared.options.shuffle) {
    begin_epoch(given_epoch_);
}

bool Lane::all_given() const {
    // epoch_samples goes on through as many passes as it takes.
    const Options& options = shared_.options;
    return options.epochs != 0 && options.epoch_samples == 0 &&
           given_epoch_ - options.epoch >= options.epochs;
}

std::shared_ptr<ShardRun> Lane::next_run() {
    if (all_given() || runs_.size() >= most_runs_) return nullptr;
    const bool last = given_turn_ + 1 == shards_;
    runs_.push_back(std::make_shared<ShardRun>(shared_, given_epoch_, number_, given_turn_, last));
    if (runs_.size() == 1) runs_.front()->become_first();
    given_turn_ = last ? 0 : given_turn_ + 1;
    given_epoch_ += last ? 1 : 0;
    return runs_.back();
}

void Lane::begin_epoch(uint64_t epoch) {
    epoch_over_ = false;
    buffer_.begin(shared_.options.seed, epoch, number_);
}

// Makes block_ the block with the next sample.
Pull Lane::fetch_block() {
    while (!block_ || next_ == block_->count) {
        block_.reset();
        if (epoch_over_) return Pull::epoch_end;
        if (events_.empty()) {
            std::unique_lock lock(shared_.mutex);
            if ((!head() || !head()->has_event()) && !client_.wait(lock, *this)) return Pull::later;
            last_of_epoch_ = head()->last_of_epoch();
            head()->take_events(events_);
            if (events_.back().end) {
                runs_.pop_front();
                if (!runs_.empty()) runs_.front()->become_first();
                readers.notify_one();
            }
        }
        ShardRun::Event event = std::move(events_.front());
        events_.pop_front();
        if (event.end) epoch_over_ = last_of_epoch_;
        if (!event.warning.empty()) client_.warn(event.warning);
        if (event.block) {
            block_ = std::move(event.block);
            next_ = 0;
            if (!shuffles()) hand_out(*block_);
        } else if (event.fault) {
            client_.fault(std::move(*event.fault), event.end);
        } else {
            shared_.stats.add_alone(SHF_STAT_SHARDS, 1);
        }
    }
    return Pull::sample;
}

void Lane::hand_out(const Block& block) const {
    if (shared_.batched) return;  // until it is decoded
    for (const StorageRef& storage : block.storages) storage.hand_out();
    shared_.wake_readers();
}

Pull Lane::pull_in_order(Delivery& out) {
    const Pull pull = fetch_block();
    if (pull != Pull::sample) return pull;
    out.index = next_++;
    if (next_ == block_->count) {
        out.block = std::move(block_);
    } else {
        block_->ref();
        out.block.reset(block_.get());
    }
    return Pull::sample;
}

Pull Lane::pull_block(BlockRef& out, uint64_t most) {
    const Pull pull = fetch_block();
    if (pull == Pull::sample && next_ == 0 && block_->count <= most) out = std::move(block_);
    return pull;
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
    const uint64_t bytes = block_->memory();
    const uint64_t all = shared_.shuffle_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    buffer_.put(std::move(block_));
    if (all > shared_.options.memory) throw shared_.shuffle_too_large();
    return Pull::sample;
}

Pull Lane::pull(Delivery& out) {
    if (!shuffles()) return pull_in_order(out);
    while (!buffer_.full()) {
        const Pull pull = fill();
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end) break;
    }
    if (buffer_.empty()) {
        if (fault_) throw Error(*fault_);
        return Pull::epoch_end;
    }
    out.block = buffer_.draw();
    out.index = 0;
    shared_.shuffle_bytes.fetch_sub(out.block->memory(), std::memory_order_relaxed);
    hand_out(*out.block);
    return Pull::sample;
}

}  // namespace shf
