// A Batcher with the option pack_window: rows are filled best-fit from so many samples at a time.
#include "core/error.h"
#include "core/options.h"
#include "stream/batcher.h"

#include <algorithm>
#include <utility>

namespace shf {

void Batcher::restore_given(std::vector<WaitingAndGiven> given, std::vector<BegunSample> begun) {
    if (windows()) return taken_.restore(std::move(given), std::move(begun));
    taken_.restore(std::move(given), {});
    begun_ = std::move(begun);
}

// A window is that many samples as they are taken, also those without a row and those that were
// given before the stream resumed: it resumes at the start of one, so that they are the same.
void Batcher::take_window(DecodeScratch& scratch) {
    uint64_t number = [&] {
        const std::lock_guard lock(mutex_);
        return taken_.count();
    }();
    if (run_.count == 0 && !take_run_between(number == window_end_ && number > 0)) {
        if (open_) close_making({});
        const std::lock_guard lock(mutex_);
        return end(std::nullopt);
    }
    if (!open_) begin_window(number);
    for (; run_.count > 0 && number < window_end_; ++number) {
        const uint32_t sample = run_.first++;
        --run_.count;
        put_into_window(sample, scratch);
    }
    if (run_.count == 0) {
        run_.block.reset();
        samples_.wake_readers();
    }
    account(*open_);
    const bool enough = [&] {
        const std::lock_guard lock(mutex_);
        return open_->failures.size() > context_.options.max_skips;
    }();
    if (number == window_end_ || enough) close_making({});
}

// With sample `number`.
void Batcher::begin_window(uint64_t number) {
    open_making();
    if (number < window_end_) return;  // the same one, of which a part was closed
    window_end_ = number + context_.options.pack_window;
    if (run_.first == run_.begin) return;
    // In the middle of a block.
    Position position = *run_.before;
    for (uint32_t i = run_.begin; i < run_.first; ++i) position.skip(place_of(*run_.block, i));
    auto start = std::make_shared<const Position>(std::move(position));
    const std::lock_guard lock(mutex_);
    taken_.stand_at(std::move(start));
}

void Batcher::put_into_window(uint32_t sample, DecodeScratch& scratch) {
    PendingBatch& making = *open_;
    const Block& block = *run_.block;
    const Origin& origin = *block.origins[block.origin[sample]];
    auto& epoch_of_row = epoch_of_rows(origin);
    const TakenSamples::Taken taken = take_from_run(sample);
    bool added = false;
    try {
        if (!taken.given && measure_sample(plan_, block, sample, measured_)) {
            // Before the row is there, which must not lack them.
            making.numbers.resize(static_cast<size_t>(making.builder.rows()));
            making.given.resize(making.numbers.size());
            making.numbers.push_back(taken.number);
            making.given.push_back(taken.elements);
            making.builder.add(block, sample, measured_);
            added = true;
        } else if (!taken.given) {
            context_.stats.add(SHF_STAT_PASSED_OVER, 1);
            making.bad_numbers.push_back(taken.number);
        }
    } catch (const BatchTooLarge&) {
        throw;  // no fault of the sample
    } catch (const Error& error) {
        if (context_.options.on_error == OnError::raise || !skippable(error.code())) throw;
        making.bad_numbers.push_back(taken.number);
        const std::lock_guard lock(mutex_);
        making.failures.push_back(
            {making.builder.rows(), PendingBatch::Failure::never_added, error.fault()});
    }
    if (added || taken.given) epoch_of_row = origin.epoch;
    check_epoch(origin, epoch_of_row);
    if (!added) return;
    if (making.blocks.empty() || making.blocks.back().get() != run_.block.get())
        making.blocks.push_back(run_.block->share());
    making.kept_bytes += block.payload_of(sample);
    for (const DecodeWork& todo : making.builder.take_work()) decode_at_once(making, todo, scratch);
}

// The rows of a window that was decoded.
void Batcher::fit_window(Left& left) {
    std::vector<DocumentPart> documents;
    std::vector<uint64_t> none;  // numbers of samples of which rows need nothing
    size_t next = 0;
    for (uint64_t row = 0; row < left.batch->rows; ++row) {
        const bool is_sound = next < left.rows.size() && left.rows[next] == row;
        if (is_sound) ++next;
        const uint64_t all = is_sound ? elements_of(*left.batch, row) : 0;
        const uint64_t had = left.given[row];
        if (is_sound && had > all) throw_begun_too_far(left, row, had);
        if (is_sound && all > had)
            documents.push_back({left.batch.get(), row, had, all - had});
        else
            none.push_back(left.numbers[row]);
    }
    for (std::vector<DocumentPart>& parts : fit_documents(documents, context_.options.pack))
        left.packed.push_back(std::move(parts));
    const std::lock_guard lock(mutex_);
    taken_.leave_out(none);
}

// A batch of the first `most` rows that are left, at least one.
BatchRef Batcher::join_fitted(uint64_t most, std::vector<HandedOut>& handed) {
    const uint64_t width = context_.options.pack;
    std::vector<DocumentPart> parts;
    std::vector<BatchRef> used;
    for (uint64_t rows = std::min(most, left_rows_); rows > 0; --rows, --left_rows_) {
        Left& left = left_.front();
        uint64_t room = width;
        for (const DocumentPart& part : left.packed.front()) {
            parts.push_back(part);
            room -= part.count;
            const uint64_t all = elements_of(*part.batch, part.row);
            handed.push_back({.number = left.numbers[part.row],
                              .whole = part.begin + part.count == all,
                              .elements = part.count});
        }
        if (room > 0) parts.push_back({nullptr, 0, 0, room});
        left.packed.pop_front();
        if (!left.packed.empty()) continue;
        used.push_back(std::move(left.batch));
        left_.pop_front();
    }
    return pack_documents(parts, width, allocate_copy());
}

}  // namespace shf
