#include "stream/stream.h"

#include "core/options.h"

#include <algorithm>
#include <utility>

namespace shf {

namespace {

// So many samples or bytes are read again and dropped after a restore in the middle of a block,
// rather than that every block pays for a note of where it starts.
constexpr size_t most_handed = 4096;
constexpr uint64_t most_handed_bytes = 1 << 20;

}  // namespace

Stream::Stream(std::span<const char* const> urls, const Options& options,
               std::unique_ptr<LaneProvider> provider)
    : tree_(std::make_unique<LaneSequence>(urls, options, std::move(provider))),
      maker_(tree_.top()) {
    prepare_consumer();
}

Stream::Stream(std::span<Stream* const> parts, std::span<const double> weights,
               const Options& options)
    : Stream(trees_of(parts), weights, options) {}

Stream::Stream(std::span<SequenceTree* const> parts, std::span<const double> weights,
               const Options& options)
    : tree_(parts, weights, options), maker_(tree_.top()) {
    prepare_consumer();
    tree_.adopt(parts);
}

std::vector<SequenceTree*> Stream::trees_of(std::span<Stream* const> parts) {
    std::vector<SequenceTree*> trees;
    for (size_t i = 0; i < parts.size(); ++i)
        about_part(i, [&] {
            if (parts[i]->batcher_)
                throw Error(SHF_E_USAGE, "this stream delivers batches",
                            "leave the option batch to the mix");
            if (!parts[i]->untouched())
                throw Error(SHF_E_USAGE, "samples were already taken from this stream",
                            "mix streams right after opening");
            trees.push_back(&parts[i]->tree_);
        });
    return trees;
}

Stream::~Stream() {
    cancel();
    // While any thread runs, the batcher exists and batcher_ does not change: who waits for the
    // user's allocator wakes it.
    tree_.join();
    if (batcher_) batcher_->join();
}

void Stream::prepare_consumer() {
    if (tree_.context().batched) batcher_ = std::make_unique<Batcher>(tree_);
    if (batcher_)
        tree_.on_wait([this] { batcher_->wake(); });
    else
        tree_.on_wait({});
}

void Stream::cancel() noexcept {
    tree_.cancel();
    if (batcher_) batcher_->wake();
}

bool Stream::untouched() const {
    return !tree_.started() && !checkpoint_ && tree_.stat(SHF_STAT_SAMPLES) == 0;
}

// ---- Calls --------------------------------------------------------------------------------------

void Stream::begin_call() {
    const StreamContext& context = tree_.context();
    context.cancel.check();
    if (failure_) throw Error(*failure_);
    tree_.start();
    tree_.serve();
    if (context.options.timeout != 0)
        wait_.until = Clock::now() + std::chrono::nanoseconds(context.options.timeout);
}

// Runs one call; every failure but a timeout stays.
template <typename Take>
auto Stream::guarded(Take take) {
    // Callbacks may run on this thread while this lives.
    struct InsideCall {
        explicit InsideCall(const SequenceTree& tree) : tree(tree) { tree.enter(); }
        ~InsideCall() { tree.leave(); }
        InsideCall(const InsideCall&) = delete;
        InsideCall& operator=(const InsideCall&) = delete;
        const SequenceTree& tree;
    } const inside(tree_);
    try {
        begin_call();
        auto taken = take();
        if (!taken) tree_.leave_pipes();
        tree_.pass_on_notices();
        return taken;
    } catch (...) {
        Fault fault = describe_exception();
        tree_.pass_on_notices();
        if (fault.code != SHF_E_TIMEOUT && !failure_) failure_ = std::move(fault);
        throw;
    }
}

void Stream::check_mode(bool batches) const {
    if (batches && !batcher_)
        throw Error(SHF_E_USAGE, "this stream has no batches", "set the option batch");
    if (!batches && batcher_)
        throw Error(SHF_E_USAGE, "this stream delivers batches",
                    "leave out the option batch, or take batches");
}

// To the user.
void Stream::count(uint64_t samples, uint64_t bytes) {
    Stats& stats = tree_.context().stats;
    stats.add_alone(SHF_STAT_SAMPLES, samples);
    stats.add_alone(SHF_STAT_BYTES, bytes);
}

Sample* Stream::next() {
    check_mode(false);
    return guarded([this]() -> Sample* {
        Delivery delivery = maker_.take_pending();
        checkpoint_.reset();
        older_checkpoint_.reset();
        last_block_ = 0;
        if (!delivery.block && tree_.top().pull(delivery, wait_) == Pull::epoch_end) return nullptr;
        Block* block = delivery.block.release();
        tree_.top().use_up(1);
        count(1, block->payload_of(delivery.index));
        return &block->samples[delivery.index];
    });
}

BlockRef Stream::next_block(uint64_t most) {
    check_mode(false);
    return guarded([this, most]() -> BlockRef {
        SampleSequence& sequence = tree_.top();
        tree_.drop_delivered_shared(wait_);
        note_call();
        // A state of shared lanes is merged with others, and gives no position by its own samples.
        const uint64_t wanted = tree_.shares_lanes() ? 1 : most == 0 ? UINT64_MAX : most;
        const uint64_t bound = std::min(wanted, sequence.remaining());
        BlockRef block;
        if (!maker_.has_pending() && sequence.pull_block(block, bound, wait_) == Pull::epoch_end)
            return nullptr;
        if (!block) block = maker_.next(bound, wait_);
        if (!block) return nullptr;
        failure_ = maker_.take_fault();  // the samples before it come first
        sequence.use_up(block->count);
        count(block->count, block->payload_bytes);
        note_block(*block);
        return block;
    });
}

BatchRef Stream::next_batch() {
    check_mode(true);
    return guarded([this]() -> BatchRef {
        BatchRef batch = batcher_->next(wait_.until);
        if (batch) count(batch->rows, batch->bytes());
        return batch;
    });
}

// ---- Saving and restoring -----------------------------------------------------------------------

// At the start of a call of next_block. The sample that waits of maker_ was pulled already: what
// is noted then is the position after it.
void Stream::note_call() {
    last_block_ = 0;
    older_checkpoint_.reset();
    if (checkpoint_ && checkpoint_->handed.size() < most_handed &&
        checkpoint_->bytes < most_handed_bytes && !tree_.shares_lanes())
        return;
    if (maker_.has_pending()) older_checkpoint_ = std::move(checkpoint_);
    checkpoint_ = BlockCheckpoint{.position = tree_.top().position(), .handed = {}};
}

void Stream::note_block(const Block& block) {
    for (uint32_t i = older_checkpoint_ ? 1 : 0; i < block.count; ++i)
        checkpoint_->handed.push_back(place_of(block, i));
    checkpoint_->bytes += block.payload_bytes;
    last_block_ = block.count;
}

StreamState Stream::save(uint64_t unread) {
    const uint64_t most = batcher_ ? (batcher_->gave_batch() ? 1 : 0) : last_block_;
    if (unread > most)
        throw Error(SHF_E_USAGE,
                    std::to_string(unread) + " were not used, of " + std::to_string(most),
                    "say how many samples of the block that came last were not used, or whether "
                    "the batch that came last was not");
    StreamState state = tree_.top().identity();
    if (batcher_) {
        state.stand_at(batcher_->position(unread > 0));
        state.columns = batcher_->saved_columns();
        if (state.columns.empty()) state.columns = restored_columns_;
    } else if (unread == 0 && !maker_.has_pending() && !maker_.lost()) {
        state.stand_at(tree_.top().position());
    } else {
        const bool none_used = older_checkpoint_ && unread == last_block_;
        const BlockCheckpoint& note = none_used ? *older_checkpoint_ : *checkpoint_;
        const size_t used = note.handed.size() - (none_used ? 0 : static_cast<size_t>(unread));
        Position position = note.position;
        for (size_t i = 0; i < used; ++i) position.skip(note.handed[i]);
        state.stand_at(std::move(position));
    }
    return state;
}

void Stream::restore(const StreamState& state) {
    if (!untouched())
        throw Error(SHF_E_USAGE, "samples were already taken from this stream",
                    "restore right after opening");
    check_same_run(state, tree_.top().identity());
    std::vector<BegunSample> begun = state.begun_samples();
    if (!begun.empty() && tree_.context().options.pack == 0)
        throw Error(SHF_E_USAGE, "the state was saved in the middle of a sample that is packed",
                    "open the stream with the option pack");
    std::vector<WaitingAndGiven> given = state.given_samples();
    const Options& options = tree_.context().options;
    const bool later = std::any_of(begun.begin(), begun.end(),
                                   [](const BegunSample& sample) { return sample.behind > 0; });
    if ((!given.empty() && options.bucket.empty() && options.pack_window == 0) ||
        (later && options.pack_window == 0))
        throw Error(SHF_E_USAGE, "the state was saved while samples waited in buckets or a window",
                    "open the stream with the option bucket or pack_window, as it was");
    SampleSequence::Restored restored = tree_.top().prepare(state);
    if (batcher_) {
        batcher_->restore_columns(state.columns);
        batcher_->restore_given(std::move(given), std::move(begun));
    }
    tree_.top().apply(std::move(restored));
    restored_columns_ = state.columns;
}

}  // namespace shf
