// The consumer's half of a Batcher: joins decoded rows into batches, or packs them, and finds the
// position at which a saved stream resumes.
#include "core/error.h"
#include "core/options.h"
#include "stream/batcher.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shf {

// The rows of a batch that is complete, and what became of those that failed.
Batcher::Left Batcher::collect(std::unique_ptr<PendingBatch> making) {
    auto& failures = making->failures;
    std::sort(failures.begin(), failures.end(), [](const auto& a, const auto& b) {
        // Samples that were never added come before the row that took their place.
        return std::tuple(a.row, !a.is_of_sample(), a.column) <
               std::tuple(b.row, !b.is_of_sample(), b.column);
    });
    Left left;
    std::optional<uint64_t> last;  // a row with a fault, after which there are no more
    auto failure = failures.begin();
    for (uint64_t row = 0; row <= making->builder.rows(); ++row) {
        for (; failure != failures.end() && failure->row == row && failure->is_of_sample();
             ++failure)
            context_.fault(std::move(failure->fault), false);
        if (row == making->builder.rows()) break;
        if (failure == failures.end() || failure->row != row) {
            left.rows.push_back(row);
            continue;
        }
        if (keeps_rows_before_fault()) {
            last = row;
            break;
        }
        context_.fault(std::move(failure->fault), false);
        while (failure != failures.end() && failure->row == row) ++failure;
    }
    const uint64_t failed = making->builder.rows() - left.rows.size();
    {
        const std::lock_guard lock(mutex_);
        const uint64_t size = context_.options.batch;
        phase_ = (phase_ + size - failed % size) % size;
    }
    left.whole = making->whole;
    left.numbers = std::move(making->numbers);
    left.given = std::move(making->given);
    left.start = making->start;
    left.lanes = std::move(making->lanes);
    left.before = std::move(making->before);
    if (making->broken_off) {
        left.rows.clear();
        left.numbers.clear();
        making->bad_numbers.clear();
    } else {
        find_begun(left);
        if (last) end_with(std::move(failure->fault), left, *last);
    }
    if (!making->bad_numbers.empty()) {
        const std::lock_guard lock(mutex_);
        taken_.leave_out(making->bad_numbers);
    }
    if (!left.rows.empty()) left.batch = making->builder.finish();
    context_.batch_bytes.fetch_sub(making->bytes, std::memory_order_relaxed);
    return left;
}

bool Batcher::has_whole_batch() const {
    const Options& options = context_.options;
    if (makes_whole_batches()) return !left_.empty() && left_.front().whole;
    if (windows()) return left_rows_ >= options.batch;
    return options.pack > 0 ? left_elements_ >= elements_of_batch(options)
                            : left_rows_ >= options.batch;
}

bool Batcher::has_rows() const {
    return context_.options.pack > 0 && !windows() ? left_elements_ > 0 : left_rows_ > 0;
}

void Batcher::throw_begun_too_far(const Left& left, uint64_t row, uint64_t had) {
    throw Error(SHF_E_FORMAT,
                "sample " + escape(left.batch->text_of(left.batch->keys(), row)) + " has " +
                    plural(elements_of(*left.batch, row), "element") +
                    ", and the saved state begins " + std::to_string(had) + " into it",
                "resume with the shards that the state was saved with");
}

void Batcher::add_left(Left left) {
    if (left.rows.empty()) {
        const std::lock_guard lock(mutex_);
        taken_.leave_out(left.numbers);
        return;
    }
    if (windows()) {
        fit_window(left);
        left_rows_ += left.packed.size();
        if (!left.packed.empty()) left_.push_back(std::move(left));
        return;
    }
    left_rows_ += left.rows.size();
    if (context_.options.pack > 0) {
        if (left_.empty()) row_elements_ = left.begun_elements(left.rows[0]);
        uint64_t elements = 0;
        for (const uint64_t row : left.rows) {
            const uint64_t all = elements_of(*left.batch, row), had = left.begun_elements(row);
            if (had > all) throw_begun_too_far(left, row, had);
            elements += all - had;
        }
        left_elements_ += elements;
    }
    left_.push_back(std::move(left));
}

// Memory for batches of rows that are copied.
Allocate Batcher::allocate_copy() {
    return [this, all = uint64_t{0}](uint64_t bytes) mutable {
        const uint64_t memory = context_.options.memory;
        if (bytes > memory || all > memory - bytes)
            throw Error(SHF_E_LIMIT, "a batch takes more than memory=" + std::to_string(memory),
                        "raise memory, or lower batch");
        all += bytes;
        return context_.pool->acquire(static_cast<size_t>(bytes), context_.cancel);
    };
}

// A batch of the first rows that are left. As long as no row fails that is the batch as it was
// made; after that rows are copied, until the batches fit again.
BatchRef Batcher::join_rows(uint64_t most) {
    Left& first = left_.front();
    const uint64_t count = std::min(most, left_rows_);
    left_rows_ -= count;
    if (first.next == 0 && first.rows.size() == count && first.batch->rows == count) {
        BatchRef batch = std::move(first.batch);
        left_.pop_front();
        return batch;
    }
    std::vector<RowOfBatch> rows;
    std::vector<BatchRef> sources;
    while (rows.size() < count) {
        Left& left = left_.front();
        while (left.next < left.rows.size() && rows.size() < count)
            rows.push_back({left.batch.get(), left.rows[left.next++]});
        if (left.next < left.rows.size()) break;
        sources.push_back(std::move(left.batch));
        left_.pop_front();
    }
    return gather_rows(rows, allocate_copy());
}

// ---- The option pack ----------------------------------------------------------------------------

void Batcher::check_packing() const {
    const Options& options = context_.options;
    const auto refuse = [](const std::string& cause, const std::string& help) {
        throw Error(SHF_E_USAGE, "pack: " + cause, help);
    };
    if (options.pack == 0 && windows())
        refuse("pack_window says how its rows are filled, and there are none",
               "set pack, or leave out pack_window");
    if (options.pack == 0 && tokenizes())
        throw Error(SHF_E_USAGE, "tokenizer: its tokens are packed, and there is no pack",
                    "set pack, or leave out the tokenizer");
    if (options.pack == 0) return;
    if (options.missing == Missing::empty)
        refuse("a sample without its arrays has nothing to pack", "set missing=skip");
    if (options.even != Even::none || options.epoch_samples > 0)
        refuse("how many rows samples become is not known before they are read",
               "remove even and epoch_samples, and end each epoch after a number of batches");
    if (samples_.shares_lanes())
        refuse("several consumers read one lane, which are to divide the elements of a sample",
               "set lanes to a multiple of the consumers");
}

// Samples of a batch in the making in which the stream resumes.
void Batcher::find_begun(Left& left) {
    for (uint32_t i = 0; i < left.lanes.size() && !begun_.empty(); ++i) {
        const auto found =
            std::find_if(begun_.begin(), begun_.end(), [&](const BegunSample& sample) {
                return sample.from.part == left.lanes[i].part &&
                       sample.from.lane == left.lanes[i].lane;
            });
        if (found == begun_.end()) continue;
        left.begun.emplace_back(i, found->elements);
        begun_.erase(found);
    }
}

uint64_t Batcher::Left::begun_elements(uint64_t row) const {
    for (const auto& [sample, elements] : begun)
        if (sample == before[row]) return elements;
    return 0;
}

// A batch of the first `most` elements that are left, at least one.
BatchRef Batcher::join_documents(uint64_t most) {
    std::vector<DocumentPart> parts;
    std::vector<BatchRef> used;
    for (uint64_t wanted = std::min(most, left_elements_); wanted > 0;) {
        const Left& left = left_.front();
        const uint64_t row = left.rows[left.next];
        const uint64_t elements = elements_of(*left.batch, row);
        const uint64_t count = std::min(elements - row_elements_, wanted);
        if (count > 0) parts.push_back({left.batch.get(), row, row_elements_, count});
        row_elements_ += count;
        wanted -= count;
        left_elements_ -= count;
        if (row_elements_ == elements) end_document(used);
    }
    return pack_documents(parts, context_.options.pack, allocate_copy());
}

// The next row. `used` gets batches that have no more.
void Batcher::end_document(std::vector<BatchRef>& used) {
    Left& left = left_.front();
    --left_rows_;
    if (++left.next == left.rows.size()) {
        used.push_back(std::move(left.batch));
        left_.pop_front();
    }
    row_elements_ = 0;
    if (!left_.empty()) {
        const Left& next = left_.front();
        row_elements_ = next.begun_elements(next.rows[next.next]);
    }
}

// Samples that rows have had a part of, or will have had when those come that were begun before the
// stream resumed.
std::vector<BegunSample> Batcher::begun_samples() const {
    std::vector<BegunSample> all = begun_;
    for (const Left& left : left_)
        for (const auto& [sample, elements] : left.begun)
            if (sample >= left.next_sample()) all.push_back({left.lanes[sample], elements});
    if (row_elements_ > 0) {
        const Left& left = left_.front();
        all.push_back({left.lanes[left.next_sample()], row_elements_});
    }
    return all;
}

// ---- Positions ----------------------------------------------------------------------------------

Position Batcher::Start::position() const {
    Position position = *before;
    for (uint64_t i = 0; i < skip; ++i) position.skip({0, position.lanes[0].lane});
    for (const LanePlace lane : lanes) position.skip(lane);
    for (const BegunSample sample : begun) position.set_begun(sample);
    return position;
}

Batcher::Start Batcher::Left::start_of(uint64_t row) const {
    Start found = start;
    found.lanes.insert(found.lanes.end(), lanes.begin(),
                       lanes.begin() + static_cast<std::ptrdiff_t>(before[row]));
    return found;
}

Batcher::Start Batcher::Left::next_start() const {
    return start_of(rows[next]);
}

// Of the next row.
Batcher::Start Batcher::start_of_left() const {
    Start start = left_.front().next_start();
    start.begun = begun_samples();
    return start;
}

// Of the batch that comes next from other threads.
Batcher::Start Batcher::start_of_making() {
    Start start;
    {
        const std::lock_guard lock(mutex_);
        start = makings_.empty() ? next_start_ : makings_.front()->start;
    }
    start.begun = begun_;
    return start;
}

Position Batcher::position(bool unused_batch) {
    if (reorders()) {
        const std::lock_guard lock(mutex_);
        return anchored_ ? taken_.position(unused_batch)
                         : taken_.before_all(samples_.top().position());
    }
    if (unused_batch) return last_->position();
    if (threads_.empty()) {
        Position position = samples_.top().position();
        for (const BegunSample sample : begun_) position.set_begun(sample);
        return position;
    }
    if (!left_.empty()) return start_of_left().position();
    if (bad_row_) return bad_row_->start.position();
    return lost_ ? lost_->position() : start_of_making().position();
}

}  // namespace shf
