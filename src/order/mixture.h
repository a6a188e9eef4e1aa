// Which part of a mix comes next: by weight, at random, and keyed, so that it can be computed for
// any sample without looking at the ones before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shf {

class Mixture {
  public:
    static constexpr size_t most_parts = 1024;

    // Parts of equal weight when there are no weights. Throws Error(USAGE).
    Mixture(size_t parts, std::span<const double> weights, uint64_t seed);

    // The part that sample number `number` of the mix comes from: the first one, in a random order
    // of the parts that depends on (seed, number) alone, that has not ended. `ended` has a place
    // for each part, and not all are set.
    //
    // The order is drawn by weight without replacement, so that each part that is left comes with
    // the share that its weight has among those that are left (Plackett: "The Analysis of
    // Permutations", 1975), and it makes no difference when the end of a part was noticed.
    [[nodiscard]] size_t choose(uint64_t number, const std::vector<bool>& ended) const;

    // The weights as they are compared with those of a saved state: whole numbers, in proportion.
    [[nodiscard]] std::string text() const;

  private:
    const uint64_t seed_;
    std::vector<uint64_t> weights_;  // at most 2^48
    uint64_t all_ = 0;               // their sum
};

}  // namespace shf
