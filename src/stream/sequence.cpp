#include "stream/sequence.h"

namespace shf {

void SampleSequence::begin_countdown(const Plan& plan) {
    const Options& options = context().options;
    const uint64_t quota = plan.quota(options.epoch_samples);
    if (options.epoch_samples != 0 && options.epochs != 0 &&
        __builtin_mul_overflow(quota, options.epochs, &remaining_))
        remaining_ = UINT64_MAX;
    context().stats.set(SHF_STAT_EPOCH_SAMPLES, quota);
}

uint64_t SampleSequence::remaining_after(const StreamState& state, const Plan& plan) {
    const uint64_t all = state.position.remaining;
    const StreamState& first = state.first_stream();
    if (first.is_of(plan.consumer(), plan.consumers())) return all;
    // Lanes that several consumers read, and the samples that are left of epoch_samples, follow
    // from the states of all of them.
    if (!first.is_of_all() && (first.lane_readers().readers() != 1 || all != UINT64_MAX))
        throw Error(SHF_E_USAGE,
                    "the state is that of " + std::to_string(first.of.size()) + " of " +
                        plural(first.consumers, "consumer"),
                    "merge the states of all ranks and workers, and restore the result");
    const Options& options = context().options;
    uint64_t total = 0;
    if (all == UINT64_MAX || __builtin_mul_overflow(options.epoch_samples, options.epochs, &total))
        return UINT64_MAX;
    // The elements t of the global sequence with t mod C = c, from the first one that nobody had.
    return plan.quota(total) - plan.quota(total - std::min(all, total));
}

}  // namespace shf
