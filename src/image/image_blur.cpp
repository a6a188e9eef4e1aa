#include "image/image_blur.h"

#include "image/resample_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace shf {

namespace {

// Even, as the kernels of resampling take two samples at once. No place is made of more samples
// than there are.
uint64_t most_taps(uint32_t side, uint32_t kernel) {
    return (uint64_t{std::min(side, kernel)} + 1) / 2 * 2;
}

// The weights of the samples at distance 0, 1, ... that are not nothing in fixed point.
std::vector<double> half_kernel(uint32_t kernel, double sigma) {
    std::vector<double> weights;
    double sum = 0;
    for (uint32_t i = 0; i <= kernel / 2; ++i) {
        const auto distance = static_cast<double>(i);
        weights.push_back(std::exp(-(distance * distance) / (2 * sigma * sigma)));
        sum += weights.back() * (i == 0 ? 1 : 2);
    }
    for (double& weight : weights) weight /= sum;
    while (weights.size() > 1 && weights.back() < 0x1p-24) weights.pop_back();
    return weights;
}

// Where a sample beyond the border comes from.
uint32_t mirrored(int64_t at, uint32_t side) {
    if (side == 1) return 0;
    const int64_t period = 2 * (int64_t{side} - 1);
    at = std::abs(at) % period;
    return static_cast<uint32_t>(std::min(at, period - at));
}

// Which samples each place of a side is made of: the weights of those beyond a border are added to
// the ones that they mirror.
void fill_table(FilterTable& table, uint32_t side, uint32_t kernel,
                const std::vector<double>& half) {
    const auto reach = static_cast<int64_t>(half.size()) - 1;
    table.is_copy = false;
    table.most = most_taps(side, kernel);
    table.taps.resize(side);
    table.precise.clear();
    std::vector<double> sums(table.most * side, 0);
    for (uint32_t i = 0; i < side; ++i) {
        const auto first = static_cast<uint32_t>(std::max<int64_t>(i - reach, 0));
        const auto end = static_cast<uint32_t>(std::min<int64_t>(i + reach + 1, side));
        // A sample that is mirrored from further away than the other border lies within, too.
        table.taps[i] = {first, end - first};
        for (int64_t k = -reach; k <= reach; ++k)
            sums[i * table.most + mirrored(i + k, side) - first] +=
                half[static_cast<size_t>(std::abs(k))];
    }
    table.weights.resize(sums.size());
    std::transform(sums.begin(), sums.end(), table.weights.begin(), [](double weight) {
        return static_cast<int32_t>(weight * (1 << weight_bits) + 0.5);
    });
}

}  // namespace

void blur(const Pixels& from, const Pixels& to, uint32_t kernel, double sigma,
          ResampleScratch& scratch) {
    const std::vector<double> half = half_kernel(kernel, sigma);
    fill_table(scratch.columns, from.width, kernel, half);
    scratch.columns.fill_pairs();
    fill_table(scratch.rows, from.height, kernel, half);
    PixelRows rows(to);
    resample(from, scratch, rows);
}

uint64_t blur_memory(uint32_t width, uint32_t height, uint32_t channels, uint32_t kernel) {
    // Sums, weights and pairs of each place, and the lines between the two passes. Sides are below
    // 2^31 and kernels small, so nothing leaves 64 bits.
    const uint64_t columns = most_taps(width, kernel) * width * 16;
    const uint64_t rows = most_taps(height, kernel) * height * 12;
    return columns + rows + (most_taps(height, kernel) + 2) * width * channels;
}

}  // namespace shf
