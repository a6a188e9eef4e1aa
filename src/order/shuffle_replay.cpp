#include "order/shuffle_replay.h"

#include "core/error.h"
#include "order/lane_state.h"

#include <algorithm>

namespace shf {

namespace {

constexpr uint64_t unknown = UINT64_MAX;

// Draws of a sequence from its end to its start.
class Backward {
  public:
    explicit Backward(const Random& random) : random_(random), left_(random.drawn()) {}
    uint64_t below(uint64_t bound) {
        while (left_ > 0)
            if (const auto number = random_.nth_below(left_--, bound)) return *number;
        throw Error(SHF_E_FORMAT, "a shuffle buffer that gave more samples than it drew numbers",
                    state_help);
    }

  private:
    const Random& random_;
    uint64_t left_;
};

}  // namespace

// Draw k (0, 1, ...) takes the sample in slot n of m; the one in the last slot moves there. While
// samples come in, the last slot then gets the next one: before draw k it has sample size - 1 + k.
// So the last draw that chose a slot determines the sample in it.
std::vector<uint64_t> shuffle_slots(const ShuffleHistory& history, const Random& random) {
    const auto [size, put, taken, closed] = history;
    const uint64_t full = history.draws_while_full();
    if (taken > put || (full > 0 && put - full > size) || (full == 0 && taken == 0 && put > size))
        throw Error(SHF_E_FORMAT, "a shuffle buffer that holds more or less than it can",
                    state_help);

    Backward draws(random);
    std::vector<uint64_t> late;  // draws out of a buffer that empties, the last one first
    for (uint64_t k = taken; k > full; --k) late.push_back(draws.below(put - k + 1));
    std::vector<uint64_t> slots(static_cast<size_t>(put - full), unknown);
    uint64_t missing = slots.size();
    if (full > 0 && slots.size() == size) {  // it was filled up after the last draw
        slots.back() = size - 1 + full;
        --missing;
    }
    for (uint64_t k = full; k > 0 && missing > 0; --k) {
        const uint64_t slot = draws.below(size);
        if (slot >= slots.size() || slots[slot] != unknown) continue;
        slots[slot] = size - 1 + (k - 1);
        --missing;
    }
    for (size_t slot = 0; slot < slots.size() && missing > 0; ++slot)
        if (slots[slot] == unknown) slots[slot] = slot;
    for (; !late.empty(); late.pop_back()) {
        slots[late.back()] = slots.back();
        slots.pop_back();
    }
    return slots;
}

}  // namespace shf
