// A Batcher with the option bucket: samples are gathered by length, so that batches come in another
// order than their samples.
#include "core/error.h"
#include "core/options.h"
#include "stream/batcher.h"

#include <algorithm>
#include <utility>

namespace shf {

void Batcher::check_counting() const {
    const Options& options = context_.options;
    if (!makes_whole_batches()) return;
    const auto refuse = [&](const std::string& cause, const std::string& help) {
        throw Error(SHF_E_USAGE, (buckets() ? "bucket: " : "batch_elements: ") + cause, help);
    };
    if (options.pack > 0) refuse("rows of pack have one length", "leave out one of the two");
    if (options.even != Even::none || options.epoch_samples > 0)
        refuse("how many batches samples become is not known before they are read",
               "remove even and epoch_samples, and end each epoch after a number of batches");
    if (!buckets()) return;
    if (options.missing == Missing::empty)
        refuse("a sample without its arrays has no length", "set missing=skip");
    if (options.ragged == Ragged::offsets)
        refuse("rows are padded to the bound of their bucket", "leave out ragged=offsets");
    if (options.batch_elements > 0 && options.batch_elements < plan_.bounds().back())
        refuse("batch_elements=" + std::to_string(options.batch_elements) +
                   " has no room for a row of " + std::to_string(plan_.bounds().back()),
               "raise batch_elements");
    if (samples_.shares_lanes())
        refuse("several consumers read one lane", "set lanes to a multiple of the consumers");
}

// Buckets that samples wait in, until their batch is full or the first of them has waited for long.
// The order of the batches follows from the order of the samples alone.
void Batcher::take_into_buckets(DecodeScratch& scratch) {
    if (run_.count == 0) {
        // A position is kept once in about a batch.
        const bool keeps = [&] {
            const std::lock_guard lock(mutex_);
            return taken_.count() - *anchored_ >= context_.options.batch;
        }();
        if (!take_run_between(keeps)) return end_buckets();
    }
    if (buckets_.empty()) buckets_.resize(plan_.bounds().size());
    // Then another thread may take; and after each batch it is seen whether there is room for more.
    constexpr uint64_t enough = 256 * 1024;
    closed_ = false;
    for (uint64_t bytes = 0; run_.count > 0 && bytes < enough && !closed_;) {
        const uint32_t sample = run_.first++;
        --run_.count;
        bytes += put_into_bucket(sample, scratch);
    }
    if (run_.count > 0) return;
    run_.block.reset();
    samples_.wake_readers();
}

// The next samples; false at the end. `keeps`: the position before them is kept.
bool Batcher::take_run_between(bool keeps) {
    std::shared_ptr<const Position> before;
    if (keeps && !samples_.top().gives_whole_blocks())
        before = std::make_shared<const Position>(samples_.top().position());
    run_ = take_run();
    if (run_.count == 0) before = std::make_shared<const Position>(samples_.top().position());
    if (run_.before) before = run_.before;
    if (!keeps && run_.count > 0) return true;
    const std::lock_guard lock(mutex_);
    anchored_ = taken_.count();
    taken_.stand_at(std::move(before));
    return run_.count > 0;
}

TakenSamples::Taken Batcher::take_from_run(uint32_t sample) {
    const std::lock_guard lock(mutex_);
    return taken_.take(place_of(*run_.block, sample));
}

// Returns how many bytes of work the sample brought.
uint64_t Batcher::put_into_bucket(uint32_t sample, DecodeScratch& scratch) {
    const Block& block = *run_.block;
    const Origin& origin = *block.origins[block.origin[sample]];
    auto& epoch_of_row = epoch_of_rows(origin);
    const TakenSamples::Taken taken = take_from_run(sample);
    PendingBatch* making = nullptr;
    uint64_t bytes = 0;
    try {
        if (taken.given) {
            epoch_of_row = origin.epoch;
        } else if (measure_sample(plan_, block, sample, measured_)) {
            making = &bucket_of(measured_);
            making->numbers.push_back(taken.number);
            making->builder.add(block, sample, measured_);
            epoch_of_row = origin.epoch;
        } else {
            context_.stats.add(SHF_STAT_PASSED_OVER, 1);
            const std::lock_guard lock(mutex_);
            taken_.leave_out({&taken.number, 1});
        }
    } catch (const BatchTooLarge&) {
        throw;  // no fault of the sample
    } catch (const Error& error) {
        if (context_.options.on_error == OnError::raise || !skippable(error.code())) throw;
        if (making) making->numbers.pop_back();
        making = nullptr;
        bad_.push_back({0, PendingBatch::Failure::never_added, error.fault()});
        bad_numbers_.push_back(taken.number);
        if (bad_.size() > context_.options.max_skips) report_failures();
    }
    if (making) {
        std::vector<DecodeWork> work;
        for (DecodeWork& todo : making->builder.take_work()) {
            bytes += todo.type.bytes();
            if (todo.cheap)
                decode_at_once(*making, todo, scratch);
            else
                work.push_back(todo);
        }
        if (!work.empty()) hand_out_work(*making, std::move(work), run_.block);
        account(*making);
        // Columns of any length grow with every row. The sum of all batches is never below that of
        // the buckets.
        if (context_.batch_bytes.load(std::memory_order_relaxed) > context_.options.memory)
            check_memory_of_buckets();
        if (making->builder.full()) close_bucket(measured_.bucket, true);
    } else {
        check_epoch(origin, epoch_of_row);
    }
    close_waiting_buckets(taken.number);
    return bytes;
}

Batcher::PendingBatch& Batcher::bucket_of(const MeasuredSample& measured) {
    std::unique_ptr<PendingBatch>& bucket = buckets_[measured.bucket];
    if (!bucket)
        bucket = std::make_unique<PendingBatch>(
            plan_, context_.options.batch,
            [this](uint64_t bytes) {
                return context_.pool->acquire(static_cast<size_t>(bytes), context_.cancel);
            },
            plan_.bounds()[measured.bucket]);
    return *bucket;
}

void Batcher::check_memory_of_buckets() const {
    uint64_t bytes = 0;
    for (const auto& bucket : buckets_)
        if (bucket) bytes += bucket->bytes;
    if (bytes > context_.options.memory)
        throw BatchTooLarge(SHF_E_LIMIT,
                            "the batches of all buckets take more than memory=" +
                                std::to_string(context_.options.memory),
                            "raise memory, or lower batch");
}

// What is in the bucket is the batch that comes next, behind those that were closed before.
void Batcher::close_bucket(size_t number, bool whole) {
    PendingBatch& making = *buckets_[number];
    making.whole = whole;
    std::vector<Task> tasks = close_builder(making);
    std::string columns = plan_.saved_columns();
    const std::lock_guard lock(mutex_);
    saved_columns_ = std::move(columns);
    for (auto& failure : bad_) making.failures.push_back(std::move(failure));
    making.numbers.insert(making.numbers.end(), bad_numbers_.begin(), bad_numbers_.end());
    makings_.push_back(std::move(buckets_[number]));
    open_ = &making;  // until the consumer may have it
    publish(making, std::move(tasks));
    open_ = nullptr;
    closed_ = true;
    bad_.clear();
    bad_numbers_.clear();
}

// Those whose first sample has waited for long: `taken` is the number of the latest one.
void Batcher::close_waiting_buckets(uint64_t taken) {
    for (size_t i = 0; i < buckets_.size(); ++i)
        if (buckets_[i] && buckets_[i]->builder.rows() > 0 &&
            taken - buckets_[i]->numbers.front() >= context_.options.bucket_wait)
            close_bucket(i, true);
}

// Samples that were bad as a whole are reported without waiting for a batch.
void Batcher::report_failures() {
    if (bad_.empty()) return;
    auto making = std::make_unique<PendingBatch>(plan_, 1, Allocate());
    const std::lock_guard lock(mutex_);
    making->failures = std::move(bad_);
    making->numbers = std::move(bad_numbers_);
    making->closed = true;
    makings_.push_back(std::move(making));
    bad_.clear();
    bad_numbers_.clear();
    consumer_.notify_one();
}

// No sample is left: what waits becomes the last batches, the shortest samples first.
void Batcher::end_buckets() {
    for (size_t i = 0; i < buckets_.size(); ++i)
        if (buckets_[i] && buckets_[i]->builder.rows() > 0) close_bucket(i, false);
    report_failures();
    const std::lock_guard lock(mutex_);
    end(std::nullopt);
}

}  // namespace shf
