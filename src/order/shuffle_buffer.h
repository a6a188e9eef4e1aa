// The sample shuffle of one lane: a buffer of N items from which one is drawn at random for every
// item that comes in.
#pragma once

#include "core/random.h"

#include <utility>
#include <vector>

namespace shf {

template <typename Item>
class ShuffleBuffer {
  public:
    explicit ShuffleBuffer(uint64_t size) : size_(size) {}

    // A new epoch begins: the buffer must be empty.
    void begin(uint64_t seed, uint64_t epoch, uint32_t lane) {
        random_ = Random(Random::sample_shuffle, {seed, epoch, lane});
    }
    [[nodiscard]] bool full() const { return items_.size() >= size_; }
    [[nodiscard]] bool empty() const { return items_.empty(); }
    void put(Item item) { items_.push_back(std::move(item)); }
    // The item that draw() gives next. Must not be empty.
    Item& next() {
        Random random = random_;
        return items_[static_cast<size_t>(random.below(items_.size()))];
    }
    // Removes a random item. Must not be empty.
    Item draw() {
        const auto number = static_cast<size_t>(random_.below(items_.size()));
        std::swap(items_[number], items_.back());
        Item item = std::move(items_.back());
        items_.pop_back();
        return item;
    }
    // What shuffle_slots() (order/shuffle_replay.h) computes its content from.
    [[nodiscard]] const Random& random() const { return random_; }

    // Continues as after `drawn` numbers, with `items` in its slots.
    void restore(uint64_t drawn, std::vector<Item> items) {
        random_.set_drawn(drawn);
        items_ = std::move(items);
    }

  private:
    const uint64_t size_;
    std::vector<Item> items_;
    Random random_{Random::sample_shuffle, {}};
};

}  // namespace shf
