#include "stream/sequence_tree.h"

#include "stream/mix_sequence.h"

#include <algorithm>
#include <utility>

namespace shf {

SequenceTree::SequenceTree(std::unique_ptr<LaneSequence> stream)
    : contexts_{&stream->context()}, streams_{stream.get()}, shares_lanes_(stream->shares_lanes()) {
    top_ = std::move(stream);
}

SequenceTree::SequenceTree(std::span<SequenceTree* const> parts, std::span<const double> weights,
                           const Options& options) {
    std::vector<MixSequence::Streams> streams;
    for (const SequenceTree* part : parts) {
        streams.push_back(part->streams_);
        streams_.insert(streams_.end(), part->streams_.begin(), part->streams_.end());
        depth_ = std::max(depth_, part->depth_ + 1);
        shares_lanes_ = shares_lanes_ || part->shares_lanes_;
    }
    if (depth_ > deepest_mix)
        throw Error(SHF_E_USAGE,
                    "mixes are nested more than " + std::to_string(deepest_mix) + " deep",
                    "mix streams with the products of their weights instead");
    auto mix = std::make_unique<MixSequence>(streams, weights, options);
    contexts_.push_back(&mix->context());
    for (const SequenceTree* part : parts)
        contexts_.insert(contexts_.end(), part->contexts_.begin(), part->contexts_.end());
    mix_ = mix.get();
    top_ = std::move(mix);
}

void SequenceTree::adopt(std::span<SequenceTree* const> parts) noexcept {
    for (SequenceTree* part : parts) {
        mix_->adopt(std::move(part->top_));
        part->contexts_.clear();
        part->streams_.clear();
    }
    uint32_t number = 0;
    for (LaneSequence* stream : streams_) stream->set_part(number++);
}

void SequenceTree::start() {
    for (LaneSequence* stream : streams_) stream->start();
}

bool SequenceTree::started() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const LaneSequence* stream) { return stream->started(); });
}

void SequenceTree::drop_delivered_shared(const Wait& wait) {
    for (LaneSequence* stream : streams_) stream->drop_delivered_shared(wait);
}

void SequenceTree::leave_pipes() noexcept {
    for (LaneSequence* stream : streams_) stream->leave_pipes();
}

void SequenceTree::pass_on_notices() {
    for (StreamContext* context : contexts_) context->pass_on_notices();
}

void SequenceTree::enter() const noexcept {
    for (const StreamContext* context : contexts_) context->pool->enter();
}

void SequenceTree::leave() const noexcept {
    for (const StreamContext* context : contexts_) context->pool->leave();
}

void SequenceTree::serve() const {
    for (const StreamContext* context : contexts_) context->pool->serve();
}

bool SequenceTree::wants_service() const {
    return std::any_of(contexts_.begin(), contexts_.end(),
                       [](const StreamContext* context) { return context->pool->wants_service(); });
}

uint64_t SequenceTree::stat(int32_t stat) const {
    if (stat == SHF_STAT_EPOCH_SAMPLES) return context().stats.get(stat);
    uint64_t value = 0;
    for (const StreamContext* context : contexts_) value += context->stat(stat);
    return value;
}

void SequenceTree::wake_readers() {
    for (LaneSequence* stream : streams_) stream->wake_readers();
}

void SequenceTree::cancel() noexcept {
    for (StreamContext* context : contexts_) context->cancel.request();
    for (LaneSequence* stream : streams_) stream->interrupt();
    for (const StreamContext* context : contexts_) context->pool->interrupt();
}

void SequenceTree::join() noexcept {
    for (LaneSequence* stream : streams_) stream->join();
}

void SequenceTree::on_wait(const std::function<void()>& wake) {
    for (const StreamContext* context : contexts_) context->pool->on_wait = wake;
    if (wake) return;
    for (LaneSequence* stream : streams_)
        stream->context().pool->on_wait = [stream] { stream->wake_consumer(); };
}

}  // namespace shf
