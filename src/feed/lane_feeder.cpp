#include "feed/lane_feeder.h"

#include "core/threads.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace shf {

namespace {

// A message is sent when it is so old, even if it is small.
constexpr auto message_patience = std::chrono::milliseconds(20);
constexpr uint32_t most_in_message = 4096;  // of a message
// The first one is there soon.
constexpr uint32_t most_in_first = 16;

constexpr size_t most_skips = 64;  // of a message without samples

Options options_of_lane(Options options) {
    options.batch = 0;  // samples are decoded one by one
    options.timeout = 0;
    options.threads = std::max<uint64_t>(options.threads, 1);
    // Nobody is inside a call of the library while a lane is read.
    options.alloc = nullptr;
    options.release = nullptr;
    options.log = nullptr;
    return options;
}

std::unique_ptr<Lane> lane_at(LaneContext& context, const LaneState& from) {
    const std::vector<uint32_t> own = context.plan.own_lanes();
    if (context.plan.shares_lanes())
        throw Error(SHF_E_USAGE, "a feed to consumers that share lanes",
                    "set lanes to a multiple of the ranks times their workers");
    if (!std::binary_search(own.begin(), own.end(), from.lane) ||
        context.plan.shards_of(from.lane) == 0)
        throw Error(SHF_E_USAGE, "lane " + std::to_string(from.lane) + " is none of this consumer",
                    "use one version of shardfeed on all machines");
    if (from.begun == 0 && from.taken == 0)
        return std::make_unique<Lane>(context, from.lane, from.epoch);
    return std::make_unique<Lane>(context, from);
}

}  // namespace

LaneFeeder::Reading::Reading(Shards shards, const Options& options, bool decodes,
                             const LaneState& from, FeedCounts& feed_counts)
    : context(shards.urls, options_of_lane(options), decodes), counts(feed_counts) {
    // Consumers count on the list that they were sent.
    if (context.shards.size() != shards.count || hash_of_names(context.shards) != shards.hash)
        throw Error(SHF_E_CHANGED, "the list of shards is another one than when the feed began",
                    "start the servers of the feed again");
    if (context.options.even != Even::none) context.plan.set_counts(context.sample_counts());
    if (decodes) rows.emplace(context.options);
    lane = lane_at(context, from);
    counts.add_lane(context);
}

void LaneFeeder::Reading::cancel() noexcept {
    context.cancel.request();
    const std::lock_guard lock(context.mutex);
    context.consumer.notify_all();
    context.begin.notify_all();
    lane->cancel();
    context.pool->interrupt();
}

LaneFeeder::LaneFeeder(Shards shards, const Options& options, bool rows, const OpenFrame& open,
                       Output output)
    : shards_(shards),
      options_(options),
      decodes_(rows),
      open_(open),
      output_(std::move(output)),
      most_credit_(std::clamp<uint64_t>(output_.most_credit, 2, largest_credit)),
      writer_(rows, static_cast<size_t>(open.block_bytes + open.block_bytes / 8), output_.payloads),
      packer_(options.feed_compression),
      epoch_(open.from.epoch),
      taken_(open.from.taken),
      after_(open.from),
      credit_(std::min(open.credit, most_credit_)) {
    output_.counts.credit += credit_;
    std::vector<std::thread> started;
    try {
        start_thread(started, "lanes of a feed", 1, [this] { run(); });
    } catch (...) {
        drop_credit();
        throw;
    }
    thread_ = std::move(started[0]);
}

LaneFeeder::~LaneFeeder() {
    stop();
    thread_.join();
}

void LaneFeeder::add_credit(uint64_t events) {
    const std::lock_guard lock(mutex_);
    if (stopped_ || ended_) return;
    const uint64_t more = std::min(events, most_credit_ - credit_);
    credit_ += more;
    output_.counts.credit += more;
    changed_.notify_one();
}

void LaneFeeder::stop() noexcept {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    drop_credit();
    changed_.notify_one();
    if (reading_) reading_->cancel();
}

void LaneFeeder::run() noexcept {
    std::optional<Fault> fault;
    try {
        Reading reading(shards_, options_, decodes_, open_.from, output_.counts);
        reading.context.forward_skip = [this](Fault skipped, bool whole_shard) {
            skip(std::move(skipped), whole_shard);
        };
        {
            const std::lock_guard lock(mutex_);
            if (!stopped_) reading_ = &reading;
        }
        try {
            if (reading_) {
                Lane* const lanes[] = {reading.lane.get()};
                reading.readers.start(reading.context, lanes);
                feed(reading);
            }
        } catch (...) {
            fault = describe_exception();
        }
        reading.cancel();
        const std::lock_guard lock(mutex_);
        reading_ = nullptr;
        if (stopped_) fault.reset();
    } catch (...) {
        fault = describe_exception();
    }
    if (fault) {
        try {
            flush();  // what came before it
            FeedMessage message;
            message.emplace_back(encode_fault_of_lane(open_.opening, *fault));
            output_.post(std::move(message));
        } catch (...) {
            // Without memory for a message: the consumer's credit stays unused.
        }
    }
    const std::lock_guard lock(mutex_);
    drop_credit();
    ended_ = true;
}

// What is left of it. mutex_ is held.
void LaneFeeder::drop_credit() noexcept {
    output_.counts.credit -= std::exchange(credit_, 0);
}

// False: it is to stop.
bool LaneFeeder::take_credit() {
    std::unique_lock lock(mutex_);
    const auto may_go_on = [this] { return stopped_ || credit_ > 0; };
    if (!may_go_on()) {
        output_.counts.begin_wait();
        changed_.wait(lock, may_go_on);
        output_.counts.end_wait();
    }
    if (stopped_) return false;
    --credit_;
    --output_.counts.credit;
    return true;
}

// What was added and skipped so far, if anything.
void LaneFeeder::flush() {
    if (writer_.samples() == 0 && skipped_.empty()) return;
    FeedMessage message = writer_.finish(about(), packer_);
    for (const FeedPart& part : message)
        output_.counts.bytes.fetch_add(part.bytes().size(), std::memory_order_relaxed);
    output_.post(std::move(message));
}

// A fault comes behind the samples before it.
void LaneFeeder::feed(Reading& reading) {
    while (!reading.context.is_over(epoch_) && take_credit()) {
        const Pull pull = fill(reading);
        const bool sends = writer_.samples() > 0;
        flush();
        reading.context.pass_on_notices();  // to nobody
        if (pull != Pull::epoch_end) continue;
        if (sends && !take_credit()) return;
        end_epoch(reading);
    }
}

// Adds samples until the message is large or old enough, or the epoch ends.
Pull LaneFeeder::fill(Reading& reading) {
    const uint32_t most = sent_ ? most_in_message : most_in_first;
    Wait& wait = reading.context.wait;
    wait = {};
    wait.serves = false;
    while (writer_.bytes() < open_.block_bytes && writer_.samples() < most) {
        Delivery sample;
        try {
            if (reading.lane->pull(sample) == Pull::epoch_end) {
                note_position(reading);
                return Pull::epoch_end;
            }
        } catch (const Error& error) {
            if (error.code() == SHF_E_TIMEOUT && writer_.samples() > 0) break;
            note_position(reading);  // after the samples before the fault
            throw;
        }
        ++taken_;
        add(reading, sample);
        if (writer_.samples() == 1) wait.until = Clock::now() + message_patience;
    }
    note_position(reading);
    return Pull::sample;
}

void LaneFeeder::note_position(const Reading& reading) {
    after_ = reading.lane->position(epoch_, taken_);
    for (size_t i = 0; i < lane_counters.size(); ++i)
        counts_[i] = reading.context.stats.get(lane_counters[i]);
    opened_ = reading.lane->opened();
    unopened_ = reading.lane->unopened();
}

void LaneFeeder::add(Reading& reading, const Delivery& delivery) {
    const Block& block = *delivery.block;
    sent_ = true;
    output_.counts.samples.fetch_add(1, std::memory_order_relaxed);
    if (reading.rows) return reading.rows->add(block, delivery.index, writer_);
    writer_.begin_sample(block, delivery.index);
    const uint64_t first = block.first_field[delivery.index];
    for (uint64_t i = 0; first + i < block.first_field[delivery.index + 1]; ++i) {
        const FieldView field = block.field_of(delivery.index, i);
        writer_.add_field(field.name, {field.data, field.size});
    }
    writer_.end_sample();
}

// Called while the next sample is pulled: the position of a message that is sent here is the one
// before that pull. Many skips in a row are sent without waiting for a sample.
void LaneFeeder::skip(Fault fault, bool whole_shard) {
    skipped_.push_back({std::move(fault), whole_shard, writer_.samples()});
    if (writer_.samples() == 0 && skipped_.size() >= most_skips) flush();
}

LaneFrame LaneFeeder::about() {
    LaneFrame frame;
    frame.opening = open_.opening;
    frame.epoch = epoch_;
    frame.after = after_;
    for (size_t i = 0; i < lane_counters.size(); ++i)
        frame.counts[i] = counts_[i] - std::exchange(told_[i], counts_[i]);
    frame.skipped = std::exchange(skipped_, {});
    frame.opened = opened_;
    frame.unopened = unopened_;
    return frame;
}

// The lane begins the next epoch, unless this was the last.
void LaneFeeder::end_epoch(Reading& reading) {
    LaneFrame end = about();
    ++epoch_;
    taken_ = 0;
    if (!reading.context.is_over(epoch_)) reading.lane->begin_epoch(epoch_);
    end.after = after_ = LaneState::at_start(reading.lane->number(), epoch_);
    FeedMessage message;
    message.emplace_back(encode_epoch_end(end));
    output_.post(std::move(message));
}

}  // namespace shf
