#include "feed/lane_feeder.h"

#include "core/threads.h"
#include "index/shard_counts.h"

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

Options options_of_lane(Options options) {
    options.batch = 0;  // samples are decoded one by one
    options.timeout = 0;
    // A lane has one reader, which decodes ahead of its thread.
    options.threads = std::max<uint64_t>(options.threads, 1);
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

LaneFeeder::LaneFeeder(std::span<const char* const> urls, const Options& options, bool rows,
                       const OpenFrame& open, Post post)
    : opening_(open.opening),
      block_bytes_(open.block_bytes),
      post_(std::move(post)),
      context_(urls, options_of_lane(options)),
      writer_(rows),
      epoch_(open.from.epoch),
      taken_(open.from.taken),
      credit_(open.credit) {
    context_.forward_skip = [this](Fault fault, bool whole_shard) {
        skipped_.push_back({std::move(fault), whole_shard});
    };
    if (context_.options.even != Even::none)
        context_.plan.set_counts(
            count_samples(context_.shards, context_.options, context_.filter, context_.cancel));
    if (rows) rows_.emplace(context_.options);
    lane_ = lane_at(context_, open.from);
    std::vector<std::thread> started;
    start_thread(started, "lanes of a feed", 1, [this] { run(); });
    thread_ = std::move(started[0]);
}

LaneFeeder::~LaneFeeder() {
    stop();
    thread_.join();
    readers_.join();
}

void LaneFeeder::add_credit(uint64_t events) {
    const std::lock_guard lock(mutex_);
    credit_ += std::min(events, std::numeric_limits<uint64_t>::max() - credit_);
    changed_.notify_one();
}

void LaneFeeder::stop() noexcept {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_one();
    }
    context_.cancel.request();
    const std::lock_guard lock(context_.mutex);
    context_.consumer.notify_all();
    context_.begin.notify_all();
    lane_->cancel();
    context_.pool->interrupt();
}

void LaneFeeder::run() noexcept {
    try {
        Lane* const lanes[] = {lane_.get()};
        readers_.start(context_, lanes);
        feed();
    } catch (...) {
        const Fault fault = describe_exception();
        if (!context_.cancel.requested()) {
            FeedMessage message;
            message.emplace_back(encode_fault_of_lane(opening_, fault));
            post_(std::move(message));
        }
    }
    ended_ = true;
}

// False: it is to stop.
bool LaneFeeder::take_credit() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || credit_ > 0; });
    if (stopped_) return false;
    --credit_;
    return true;
}

bool LaneFeeder::is_over() const {
    const Options& options = context_.options;
    const bool endless = options.epochs == 0 || options.epoch_samples != 0;
    return !endless && epoch_ - options.epoch >= options.epochs;
}

// A fault comes behind the samples before it.
void LaneFeeder::feed() {
    while (!is_over() && take_credit()) {
        std::optional<Fault> fault;
        Pull pull = Pull::sample;
        try {
            pull = fill();
        } catch (const Error& error) {
            if (context_.cancel.requested()) return;
            fault = error.fault();
        }
        const bool sends = writer_.samples() > 0;
        if (sends) post_(writer_.finish(about(epoch_)));
        if (fault) throw Error(std::move(*fault));
        if (pull != Pull::epoch_end) continue;
        if (sends && !take_credit()) return;
        end_epoch();
    }
}

// Adds samples until the message is large or old enough, or the epoch ends.
Pull LaneFeeder::fill() {
    const uint32_t most = samples() == 0 ? most_in_first : most_in_message;
    context_.wait = {};
    context_.wait.serves = false;
    while (writer_.bytes() < block_bytes_ && writer_.samples() < most) {
        Delivery sample;
        try {
            if (lane_->pull(sample) == Pull::epoch_end) return Pull::epoch_end;
        } catch (const Error& error) {
            if (error.code() != SHF_E_TIMEOUT || writer_.samples() == 0) throw;
            break;
        }
        add(sample);
        if (writer_.samples() == 1) context_.wait.until = Clock::now() + message_patience;
    }
    return Pull::sample;
}

void LaneFeeder::add(const Delivery& delivery) {
    const Block& block = *delivery.block;
    ++taken_;
    samples_.fetch_add(1, std::memory_order_relaxed);
    if (rows_) return rows_->add(block, delivery.index, writer_);
    writer_.begin_sample(block, delivery.index);
    const uint64_t first = block.first_field[delivery.index];
    for (uint64_t i = 0; first + i < block.first_field[delivery.index + 1]; ++i) {
        const FieldView field = block.field_of(delivery.index, i);
        writer_.add_field(field.name, {field.data, field.size});
    }
    writer_.end_sample();
}

LaneFrame LaneFeeder::about(uint64_t epoch) {
    const uint64_t shards = context_.stats.get(SHF_STAT_SHARDS);
    LaneFrame frame;
    frame.opening = opening_;
    frame.epoch = epoch;
    frame.after = lane_->position(epoch_, taken_);
    frame.shards = shards - std::exchange(shards_, shards);
    frame.skipped = std::exchange(skipped_, {});
    frame.opened = lane_->opened();
    frame.unopened = lane_->unopened();
    return frame;
}

// The lane begins the next epoch, unless this was the last.
void LaneFeeder::end_epoch() {
    LaneFrame end = about(epoch_);
    ++epoch_;
    taken_ = 0;
    if (!is_over()) lane_->begin_epoch(epoch_);
    end.after = LaneState::at_start(lane_->number(), epoch_);
    FeedMessage message;
    message.emplace_back(encode_epoch_end(end));
    post_(std::move(message));
}

}  // namespace shf
