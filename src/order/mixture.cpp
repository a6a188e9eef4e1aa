#include "order/mixture.h"

#include "core/error.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shf {

namespace {

// The largest weight becomes a number of so many bits: whole numbers up to 2^48 stay exact, and the
// sum of the weights of 1024 parts fits 64 bits.
constexpr int weight_bits = 48;

// Weights that are in the same proportions are the same.
std::vector<uint64_t> whole_numbers(std::span<const double> weights) {
    double largest = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
        if (!(weights[i] > 0) || !std::isfinite(weights[i]))
            throw Error(
                SHF_E_USAGE,
                "weight " + std::to_string(i) + " of the mix is " + std::to_string(weights[i]),
                "give numbers above 0, and leave out parts that shall not come");
        largest = std::max(largest, weights[i]);
    }
    int exponent = 0;
    (void)std::frexp(largest, &exponent);
    std::vector<uint64_t> numbers;
    uint64_t divisor = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
        const double scaled = std::round(std::ldexp(weights[i], weight_bits - exponent));
        if (scaled < 1)
            throw Error(SHF_E_USAGE,
                        "weight " + std::to_string(i) + " of the mix is nothing beside the largest",
                        "give weights that differ by less than 2^48");
        numbers.push_back(static_cast<uint64_t>(scaled));
        divisor = std::gcd(divisor, numbers.back());
    }
    for (uint64_t& number : numbers) number /= divisor;
    return numbers;
}

}  // namespace

Mixture::Mixture(size_t parts, std::span<const double> weights, uint64_t seed) : seed_(seed) {
    if (parts == 0)
        throw Error(SHF_E_USAGE, "a mix of no streams", "give at least one stream to mix");
    if (parts > most_parts)
        throw Error(SHF_E_USAGE, "a mix of " + std::to_string(parts) + " streams",
                    "mix at most " + std::to_string(most_parts) + ", or mixes of mixes");
    weights_ = weights.empty() ? std::vector<uint64_t>(parts, 1) : whole_numbers(weights);
    all_ = std::accumulate(weights_.begin(), weights_.end(), uint64_t{0});
}

size_t Mixture::choose(uint64_t number, const std::vector<bool>& ended) const {
    Random random(Random::mixing, {seed_, number});
    uint64_t all = all_;
    std::vector<bool> drawn;  // that have ended; empty until there is one
    for (;;) {
        uint64_t place = random.below(all);
        size_t part = 0;
        for (;; ++part) {
            if (!drawn.empty() && drawn[part]) continue;
            if (place < weights_[part]) break;
            place -= weights_[part];
        }
        if (!ended[part]) return part;
        if (drawn.empty()) {
            drawn.resize(weights_.size());
            // The usual case after an end, at once: the order of the others matters to nobody.
            if (std::count(ended.begin(), ended.end(), false) == 1)
                return static_cast<size_t>(std::find(ended.begin(), ended.end(), false) -
                                           ended.begin());
        }
        drawn[part] = true;
        all -= weights_[part];
    }
}

std::string Mixture::text() const {
    std::string text;
    for (const uint64_t weight : weights_) {
        if (!text.empty()) text += ':';
        text += std::to_string(weight);
    }
    return text;
}

}  // namespace shf
