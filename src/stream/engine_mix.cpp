// Mixes: an engine whose samples come from the engines of other streams. Each part keeps its
// readers, its memory and what it does about errors; of its consumer's side only the order is used.
#include "core/error.h"
#include "core/options.h"
#include "stream/engine.h"

#include <algorithm>
#include <utility>

namespace shf {

Engine::Engine(std::vector<std::unique_ptr<Engine>>& parts, std::span<const double> weights,
               const Options& options)
    : shared_(options_of("mix", options)),
      builder_(*shared_.pool, shared_.cancel, false,
               [this](BlockRef block) { gathered_ = std::move(block); }) {
    mixture_.emplace(parts.size(), weights, shared_.options.seed);
    check_parts(parts);
    check_epochs(parts);
    ended_.resize(parts.size());
    shared_.pool->on_wait = [this] {
        const Engine* caller = this;
        while (caller->mix_) caller = caller->mix_;
        if (caller->batcher_) caller->batcher_->wake();
    };
    if (BatchClient& client = *this; shared_.batched)
        batcher_ = std::make_unique<Batcher>(shared_, client);
    // Nothing fails from here on.
    parts_ = std::move(parts);
    uint32_t number = 0;
    for (const auto& part : parts_) number = part->become_part(*this, number);
    if (shared_.options.until == Until::forever)
        for (const auto& part : parts_) part->repeat();
    set_epoch_samples(plan());
}

void Engine::check_parts(std::span<const std::unique_ptr<Engine>> parts) const {
    unsigned deepest = 0;
    for (size_t i = 0; i < parts.size(); ++i)
        about_part(i, [&] {
            const Engine& part = *parts[i];
            if (part.batcher_)
                throw Error(SHF_E_USAGE, "this stream delivers batches",
                            "leave the option batch to the mix");
            if (!part.untouched())
                throw Error(SHF_E_USAGE, "samples were already taken from this stream",
                            "mix streams right after opening");
            if (shared_.options.until == Until::forever) part.check_repeats();
            deepest = std::max(deepest, part.depth());
        });
    if (deepest >= deepest_mix)
        throw Error(SHF_E_USAGE,
                    "mixes are nested more than " + std::to_string(deepest_mix) + " deep",
                    "mix streams with the products of their weights instead");
}

// An epoch of epoch_samples is dealt out to the consumers, which the parts know.
void Engine::check_epochs(std::span<const std::unique_ptr<Engine>> parts) const {
    const Options& options = shared_.options;
    if (options.epoch_samples == 0) {
        if (options.epochs != 1)
            throw Error(SHF_E_USAGE, "epochs of a mix without epoch_samples",
                        "give epochs to the parts, or epoch_samples to the mix");
        return;
    }
    if (options.until != Until::forever)
        throw Error(SHF_E_USAGE, "epoch_samples of a mix whose parts end",
                    "set until=forever, with which parts that end begin again");
    const Plan& first = parts.front()->plan();
    for (size_t i = 0; i < parts.size(); ++i)
        about_part(i, [&] { parts[i]->check_consumer(first); });
    if (options.epoch_samples < first.consumers())
        throw Error(SHF_E_USAGE,
                    "epoch_samples=" + std::to_string(options.epoch_samples) + " for " +
                        plural(first.consumers(), "consumer"),
                    "raise epoch_samples");
}

// Throws Error unless all streams in here are read by the consumer of this plan.
void Engine::check_consumer(const Plan& plan) const {
    for (const auto& part : parts_) part->check_consumer(plan);
    const Plan& own = shared_.plan;
    if (mixture_ || (own.consumer() == plan.consumer() && own.consumers() == plan.consumers()))
        return;
    const auto text = [](const Plan& plan) {
        return "consumer " + std::to_string(plan.consumer()) + " of " +
               std::to_string(plan.consumers());
    };
    throw Error(SHF_E_USAGE,
                "this stream is that of " + text(own) + ", and the first one that of " + text(plan),
                "open all parts with the same rank, world_size, worker and num_workers: the mix "
                "has epoch_samples, which are dealt out to them");
}

bool Engine::untouched() const {
    return readers_.empty() && !note_ && shared_.stats.get(SHF_STAT_SAMPLES) == 0 &&
           std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->untouched(); });
}

// Mixes in mixes.
unsigned Engine::depth() const {
    unsigned deepest = 0;
    for (const auto& part : parts_) deepest = std::max(deepest, part->depth() + 1);
    return deepest;
}

// The streams of this part are numbered from `number` on. The number after them.
uint32_t Engine::become_part(Engine& mix, uint32_t number) noexcept {
    mix_ = &mix;
    if (!mixture_) shared_.part = number++;
    for (const auto& part : parts_) number = part->become_part(*this, number);
    return number;
}

void Engine::check_repeats() const {
    if (!mixture_) refuse_second_reading(true);
    if (!over_.empty())
        throw Error(SHF_E_USAGE, "this stream was restored where its last epoch has ended",
                    "mix streams right after opening, and restore the mix");
    for (const auto& part : parts_) part->check_repeats();
}

// From now on this never ends.
void Engine::repeat() noexcept {
    shared_.options.epochs = 0;
    shared_.options.until = Until::forever;
    remaining_ = UINT64_MAX;
    for (const auto& part : parts_) part->repeat();
}

bool Engine::mix_at_end() const {
    const auto ended = std::count(ended_.begin(), ended_.end(), true);
    return shared_.options.until == Until::first ? ended > 0
                                                 : ended == static_cast<ptrdiff_t>(ended_.size());
}

Pull Engine::pull_part(Delivery& out) {
    while (!at_end()) {
        const size_t number = mixture_->choose(mixed_, ended_);
        Engine& part = *parts_[number];
        part.waiting_ = waiting_;
        const Pull pull = part.pull(out);
        if (pull == Pull::sample) {
            part.use_up(1);
            ++mixed_;
        }
        if (pull != Pull::epoch_end) return pull;
        ended_[number] = true;
    }
    return Pull::epoch_end;
}

}  // namespace shf
