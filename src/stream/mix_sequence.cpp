#include "stream/mix_sequence.h"

#include "stream/lane_sequence.h"

#include <algorithm>
#include <utility>

namespace shf {

MixSequence::MixSequence(std::span<const Streams> parts, std::span<const double> weights,
                         const Options& options)
    : context_(options_of("mix", options)),
      mixture_(parts.size(), weights, context_.options.seed),
      plan_(parts.front().front()->plan()),
      ended_(parts.size()) {
    for (size_t i = 0; i < parts.size(); ++i)
        about_part(i, [&] {
            for (const LaneSequence* stream : parts[i]) stream->check_mixes();
        });
    for (size_t i = 0; context_.options.until == Until::forever && i < parts.size(); ++i)
        about_part(i, [&] {
            for (const LaneSequence* stream : parts[i]) stream->check_repeats();
        });
    check_epochs(parts);
    parts_.reserve(parts.size());
    begin_countdown(plan_);
}

void MixSequence::check_epochs(std::span<const Streams> parts) const {
    const Options& options = context_.options;
    if (options.epoch_samples == 0) {
        if (options.epochs != 1)
            throw Error(SHF_E_USAGE, "epochs of a mix without epoch_samples",
                        "give epochs to the parts, or epoch_samples to the mix");
        return;
    }
    if (options.until != Until::forever)
        throw Error(SHF_E_USAGE, "epoch_samples of a mix whose parts end",
                    "set until=forever, with which parts that end begin again");
    for (size_t i = 0; i < parts.size(); ++i) about_part(i, [&] { check_consumers(parts[i]); });
    if (options.epoch_samples < plan_.consumers())
        throw Error(SHF_E_USAGE,
                    "epoch_samples=" + std::to_string(options.epoch_samples) + " for " +
                        plural(plan_.consumers(), "consumer"),
                    "raise epoch_samples");
}

// An epoch of epoch_samples is dealt out to the consumers, which the streams know.
void MixSequence::check_consumers(const Streams& streams) const {
    const auto text = [](const Plan& plan) {
        return "consumer " + std::to_string(plan.consumer()) + " of " +
               std::to_string(plan.consumers());
    };
    for (const LaneSequence* stream : streams)
        if (const Plan& plan = stream->plan();
            plan.consumer() != plan_.consumer() || plan.consumers() != plan_.consumers())
            throw Error(SHF_E_USAGE,
                        "this stream is that of " + text(plan) + ", and the first one that of " +
                            text(plan_),
                        "open all parts with the same rank, world_size, worker and num_workers: "
                        "the mix has epoch_samples, which are dealt out to them");
}

void MixSequence::adopt(std::unique_ptr<SampleSequence> part) noexcept {
    if (context_.options.until == Until::forever) part->repeat();
    parts_.push_back(std::move(part));
}

void MixSequence::repeat() noexcept {
    context_.options.epochs = 0;
    context_.options.until = Until::forever;
    remaining_ = UINT64_MAX;
    for (const auto& part : parts_) part->repeat();
}

bool MixSequence::is_empty() const {
    const auto ended = std::count(ended_.begin(), ended_.end(), true);
    return context_.options.until == Until::first ? ended > 0
                                                  : ended == static_cast<ptrdiff_t>(ended_.size());
}

Pull MixSequence::pull(Delivery& out, const Wait& wait) {
    while (!at_end()) {
        const size_t number = mixture_.choose(mixed_, ended_);
        SampleSequence& part = *parts_[number];
        const Pull pull = part.pull(out, wait);
        if (pull == Pull::sample) {
            part.use_up(1);
            ++mixed_;
        }
        if (pull != Pull::epoch_end) return pull;
        ended_[number] = true;
    }
    return Pull::epoch_end;
}

Position MixSequence::position() {
    Position position;
    position.remaining = remaining_;
    position.mixed = mixed_;
    for (const auto& part : parts_) position.parts.push_back(part->position());
    return position;
}

StreamState MixSequence::identity() {
    StreamState state;
    state.options = order_options(context_.options, "mix");
    state.options.emplace_back("weights", mixture_.text());
    for (const auto& part : parts_) state.parts.push_back(part->identity());
    return state;
}

SampleSequence::Restored MixSequence::prepare(const StreamState& state) {
    Restored restored;
    restored.mixed = state.position.mixed;
    for (size_t i = 0; i < parts_.size(); ++i)
        restored.parts.push_back(about_part(i, [&] { return parts_[i]->prepare(state.parts[i]); }));
    restored.remaining = remaining_after(state, plan_);
    return restored;
}

void MixSequence::apply(Restored restored) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i]->apply(std::move(restored.parts[i]));
    mixed_ = restored.mixed;
    remaining_ = restored.remaining;
}

}  // namespace shf
