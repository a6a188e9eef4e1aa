// Random numbers that are keyed: the same numbers give the same order, and the same choices for an
// image, on every machine; a draw is determined by its key and its count alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace shf {

// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014):
// the n-th output is a hash of key + n * gamma, so the state is two numbers.
class Random {
  public:
    // Different purposes and keys give independent sequences.
    enum Purpose : uint64_t {
        shard_order = 1,
        sample_shuffle = 2,
        resampling = 3,
        image_crop = 4,
        image_flip = 5,
        sample_augmentation = 6,
        mixing = 7,
        image_area = 8,
        image_view = 9,
        image_colour = 10,
        audio_crop = 11,
        image_augment = 12,
        row_mixing = 13,
        row_pairs = 14,
        video_clip = 15
    };

    Random(Purpose purpose, std::initializer_list<uint64_t> keys) : key_(mix(purpose)) {
        for (const uint64_t key : keys) key_ = mix(key_ ^ mix(key + gamma));
    }

    uint64_t next() { return mix(key_ + ++drawn_ * gamma); }

    // Uniform in 0 .. bound - 1; bound > 0. Multiply and reject (Lemire: "Fast Random Integer
    // Generation in an Interval", TOMACS 2019): no bias.
    uint64_t below(uint64_t bound) {
        for (;;)
            if (const auto number = nth_below(++drawn_, bound)) return *number;
    }

    // Uniform in least .. most, in steps of 2^-53 of their distance.
    double uniform(double least, double most) {
        return least + (most - least) * (static_cast<double>(next() >> 11) * 0x1p-53);
    }

    // What draw number `n` (1, 2, ...) gives to below(bound): nothing when it is rejected. So a
    // sequence can be looked through from its end.
    [[nodiscard]] std::optional<uint64_t> nth_below(uint64_t n, uint64_t bound) const {
        const unsigned __int128 product =
            static_cast<unsigned __int128>(mix(key_ + n * gamma)) * bound;
        const auto low = static_cast<uint64_t>(product);
        if (low >= bound || low >= (0 - bound) % bound) return static_cast<uint64_t>(product >> 64);
        return std::nullopt;
    }

    // Draws so far.
    [[nodiscard]] uint64_t drawn() const { return drawn_; }
    // Continues as after so many.
    void set_drawn(uint64_t drawn) { drawn_ = drawn; }

  private:
    static constexpr uint64_t gamma = 0x9e3779b97f4a7c15;
    static constexpr uint64_t mix(uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    uint64_t key_;
    uint64_t drawn_ = 0;
};

}  // namespace shf
