// Which samples of an epoch are whose under the option by_index, where it is known how many an
// epoch has. Sample n of a rank is element t = n * world_size + rank of the global sequence. Its
// workers take them in runs of as many as a batch has, in turn: so the batches that come from the
// workers in turn are those of a rank without workers.
#pragma once

#include "core/options.h"
#include "order/lane_state.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shf {

// How an epoch is dealt out.
struct Dealing {
    uint64_t samples = 0;  // in the epoch
    uint64_t world_size = 1, num_workers = 1;
    uint64_t batch = 1;  // samples that come to one worker together
    Even even = Even::none;

    Dealing() = default;
    Dealing(const Options& options, uint64_t samples);

    bool operator==(const Dealing&) const = default;
    [[nodiscard]] uint64_t consumers() const { return world_size * num_workers; }
    // Elements of the global sequence that are given: fewer than samples, or more, where the first
    // ones are repeated at the end.
    [[nodiscard]] uint64_t elements() const;
    // Of the first `elements`, those of a rank.
    [[nodiscard]] uint64_t of_rank(uint64_t rank, uint64_t elements) const;
};

// The part of one consumer (rank * num_workers + worker) in an epoch of which the first `base`
// elements had gone before: with other ranks and workers it may be, so that runs begin there.
class IndexedShare {
  public:
    // At most so many elements and samples: no overflow.
    static constexpr uint64_t most = uint64_t{1} << 48;

    // Throws Error(FORMAT) for a base that is not in the epoch.
    IndexedShare(const Dealing& dealing, uint64_t consumer, uint64_t base);

    // Samples of this consumer from there on.
    [[nodiscard]] uint64_t count() const { return count_up_to(dealing_.elements()); }
    // Those among them before element `t`, which is not below the base.
    [[nodiscard]] uint64_t count_up_to(uint64_t t) const;
    // The element that is sample `k` of them, k < count().
    [[nodiscard]] uint64_t element(uint64_t k) const;

  private:
    [[nodiscard]] uint64_t first_of_rank() const { return dealing_.of_rank(rank_, base_); }

    const Dealing dealing_;
    const uint64_t rank_, worker_, base_;
};

// The states of all consumers, by number, as one: the epoch, and how many elements of it have gone.
// A state of a consumer says in `taken` how many of its samples it has had since `base`. Throws
// Error(USAGE) when they did not stop at the same step.
std::pair<uint64_t, uint64_t> elements_gone(const Dealing& dealing,
                                            const std::vector<LaneState>& consumers);

// What `skip` says goes into `taken` and `epoch`.
LaneState without_skip(const Dealing& dealing, LaneState state);

}  // namespace shf
