// Whose turn it is: the lane with the smallest (epoch, samples taken from it in that epoch, lane).
// In a plain run that is one sample from each lane in turn; it stays well defined when lanes stand
// in different rounds or epochs, and no consumer ever waits for another.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <queue>
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

    void add(const Turn& turn) { queue_.push(turn); }
    [[nodiscard]] bool empty() const { return queue_.empty(); }
    [[nodiscard]] const Turn& front() const { return queue_.top(); }
    // The lane in front gave a sample.
    void took() {
        Turn turn = queue_.top();
        queue_.pop();
        ++turn.taken;
        queue_.push(turn);
    }
    // The lane in front has no more samples in its epoch.
    void next_epoch() {
        Turn turn = queue_.top();
        queue_.pop();
        queue_.push({turn.epoch + 1, 0, turn.lane});
    }
    // The lane in front is at its end.
    void leave() { queue_.pop(); }

  private:
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> queue_;
};

}  // namespace shf
