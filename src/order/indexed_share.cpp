#include "order/indexed_share.h"

#include "core/error.h"

#include <algorithm>
#include <cstddef>

namespace shf {

Dealing::Dealing(const Options& options, uint64_t samples_of_epoch)
    : samples(options.limit == 0 ? samples_of_epoch : std::min(samples_of_epoch, options.limit)),
      world_size(options.world_size),
      num_workers(options.num_workers),
      // Without workers it is all the same.
      batch(options.num_workers == 1 ? 1 : std::max<uint64_t>(options.batch, 1)),
      even(options.even) {}

uint64_t Dealing::elements() const {
    const uint64_t over = samples % world_size;
    if (even == Even::none || over == 0) return samples;
    return even == Even::drop ? samples - over : samples - over + world_size;
}

uint64_t Dealing::of_rank(uint64_t rank, uint64_t elements) const {
    return elements / world_size + (rank < elements % world_size ? 1 : 0);
}

IndexedShare::IndexedShare(const Dealing& dealing, uint64_t consumer, uint64_t base)
    : dealing_(dealing),
      rank_(consumer / dealing.num_workers),
      worker_(consumer % dealing.num_workers),
      base_(base) {
    if (base > dealing.elements())
        throw Error(SHF_E_FORMAT, "the state has a consumer where none can stand", state_help);
}

uint64_t IndexedShare::count_up_to(uint64_t t) const {
    const uint64_t of_rank = dealing_.of_rank(rank_, t) - first_of_rank();
    const uint64_t round = dealing_.batch * dealing_.num_workers;
    const uint64_t before = worker_ * dealing_.batch, rest = of_rank % round;
    return of_rank / round * dealing_.batch +
           std::min(rest > before ? rest - before : 0, dealing_.batch);
}

uint64_t IndexedShare::element(uint64_t k) const {
    const uint64_t before = k / dealing_.batch;
    const uint64_t n =
        (before * dealing_.num_workers + worker_) * dealing_.batch + k % dealing_.batch;
    return (first_of_rank() + n) * dealing_.world_size + rank_;
}

LaneState without_skip(const Dealing& dealing, LaneState state) {
    state.taken += std::exchange(state.skip, 0);
    const uint64_t rest = IndexedShare(dealing, state.lane, state.base).count();
    const uint64_t all = IndexedShare(dealing, state.lane, 0).count();
    if (state.taken < rest || all == 0) return state;
    state.taken -= rest;
    state.base = 0;
    state.epoch += 1 + state.taken / all;
    state.taken %= all;
    return state;
}

std::pair<uint64_t, uint64_t> elements_gone(const Dealing& dealing,
                                            const std::vector<LaneState>& consumers) {
    const auto wrong = [](uint64_t consumer) {
        return Error(
            SHF_E_USAGE,
            "consumer " + std::to_string(consumer) + " did not stop at the same step as the others",
            "merge states that all were saved after the same number of samples");
    };
    uint64_t epoch = UINT64_MAX, base = 0, gone = 0;
    for (const LaneState& state : consumers)
        if (state.epoch < epoch) {
            epoch = state.epoch;
            base = state.base;
        }
    // Consumers that have had all of it stand at the start of the next epoch.
    const auto taken_by = [&](const LaneState& state) {
        if (state.epoch == epoch) return state.taken;
        if (state.epoch != epoch + 1 || state.taken > 0) throw wrong(state.lane);
        return IndexedShare(dealing, state.lane, base).count();
    };
    gone = base;
    for (const LaneState& state : consumers) {
        if (state.epoch == epoch && state.base != base) throw wrong(state.lane);
        gone += std::min(taken_by(state), IndexedShare::most);
    }
    if (gone > dealing.elements())
        throw Error(SHF_E_FORMAT, "the state has a consumer where none can stand", state_help);
    for (const LaneState& state : consumers)
        if (IndexedShare(dealing, state.lane, base).count_up_to(gone) != taken_by(state))
            throw wrong(state.lane);
    if (gone == dealing.elements()) return {epoch + 1, 0};
    return {epoch, gone};
}

}  // namespace shf
