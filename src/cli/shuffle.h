// A shuffle buffer of samples.
#pragma once

#include "cli/library.h"

#include <cstdint>
#include <random>
#include <vector>

namespace cli {

// Gives samples in a random order that depends on the seed alone: once `size` are held, each one
// that comes takes the place of another.
class Shuffle {
  public:
    Shuffle(size_t size, uint64_t seed) : size_(size), random_(seed) {}

    // Takes a sample and gives one, or none while the buffer fills.
    Sample exchange(Sample sample) {
        if (size_ <= 1) return sample;
        if (held_.size() < size_) {
            held_.push_back(std::move(sample));
            return nullptr;
        }
        std::swap(held_[below(held_.size())], sample);
        return sample;
    }
    // What is left, one at a time.
    Sample drain() {
        if (held_.empty()) return nullptr;
        std::swap(held_[below(held_.size())], held_.back());
        Sample sample = std::move(held_.back());
        held_.pop_back();
        return sample;
    }

  private:
    // Without std::uniform_int_distribution, whose numbers differ between C++ libraries.
    size_t below(size_t bound) {
        using Wide = unsigned __int128;
        return static_cast<size_t>((static_cast<Wide>(random_()) * bound) >> 64U);
    }

    const size_t size_;
    std::mt19937_64 random_;
    std::vector<Sample> held_;
};

}  // namespace cli
