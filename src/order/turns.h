// Whose turn it is: the lane with the smallest (epoch, samples taken from it in that epoch, lane).
// In a plain run that is one sample from each lane in turn; it stays well defined when lanes stand
// in different rounds or epochs, and no consumer ever waits for another.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shf {

class Turns {
  public:
    struct Turn {
        uint64_t epoch;
        uint64_t taken;
        size_t lane;  // number among the consumer's lanes
        auto operator<=>(const Turn&) const = default;
    };

    void add(const Turn& turn) {
        heap_.push_back(turn);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    [[nodiscard]] bool empty() const { return heap_.empty(); }
    [[nodiscard]] const Turn& front() const { return heap_.front(); }
    // All lanes that are not at their end, in no order.
    [[nodiscard]] std::span<const Turn> all() const { return heap_; }
    // The lane in front gave so many samples.
    void took(uint64_t samples = 1) {
        Turn turn = pop();
        turn.taken += samples;
        add(turn);
    }
    // Takes out the turn of one lane that is not at its end.
    Turn take(size_t lane) {
        const auto place = std::find_if(heap_.begin(), heap_.end(),
                                        [&](const Turn& turn) { return turn.lane == lane; });
        const Turn turn = *place;
        heap_.erase(place);
        std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
        return turn;
    }

  private:
    Turn pop() {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        const Turn turn = heap_.back();
        heap_.pop_back();
        return turn;
    }

    std::vector<Turn> heap_;
};

}  // namespace shf
