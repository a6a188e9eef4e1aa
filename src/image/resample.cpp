#include "image/resample.h"

#include "image/resample_kernels.h"

#include <algorithm>
#include <cmath>

namespace shf {

namespace {

// How far from its centre, in samples of the image, the triangle reaches; and the most samples it
// covers, made even for kernels that take two at once.
double reach(uint32_t size, uint32_t resized) {
    return std::max(1.0, static_cast<double>(size) / resized);
}

size_t most_taps(uint32_t size, uint32_t resized) {
    return static_cast<size_t>(std::ceil(reach(size, resized))) * 2 + 2;
}

// precompute_coeffs() of Pillow, for the places first .. first + count - 1 of `resized`.
void fill_table(FilterTable& table, uint32_t size, uint32_t resized, uint32_t first, uint32_t count,
                uint32_t depth) {
    const double scale = static_cast<double>(size) / resized;
    const double support = reach(size, resized);
    const double per_sample = 1 / support;
    table.most = most_taps(size, resized);
    table.is_copy = size == resized;
    table.taps.resize(count);
    table.weights.assign(depth == 8 ? table.most * count : 0, 0);
    table.precise.assign(depth == 8 ? 0 : table.most * count, 0);
    std::vector<double> weights(table.most);
    // Thousands of weights that are rounded up would sum to more than one.
    const double rounding = table.most > 8192 ? 0 : 0.5;
    for (uint32_t i = 0; i < count; ++i) {
        const double centre = (first + i + 0.5) * scale;
        const auto from = static_cast<uint32_t>(std::max(centre - support + 0.5, 0.0));
        const auto to =
            static_cast<uint32_t>(std::min(centre + support + 0.5, static_cast<double>(size)));
        table.taps[i] = {from, to - from};
        double sum = 0;
        for (uint32_t k = 0; k < to - from; ++k) {
            const double distance = std::abs((k + from - centre + 0.5) * per_sample);
            weights[k] = distance < 1 ? 1 - distance : 0;
            sum += weights[k];
        }
        for (uint32_t k = 0; k < to - from; ++k) {
            const double weight = sum == 0 ? 0 : weights[k] / sum;
            if (depth == 8)
                table.weights[i * table.most + k] =
                    static_cast<int32_t>(weight * (1 << weight_bits) + rounding);
            else
                table.precise[i * table.most + k] = static_cast<float>(weight);
        }
    }
}

void fill_pairs(FilterTable& table) {
    table.pairs.resize(table.weights.size());
    for (size_t i = 0; i < table.weights.size(); i += 2) {
        table.pairs[i] = pair_high(table.weights[i], table.weights[i + 1]);
        table.pairs[i + 1] = pair_low(table.weights[i], table.weights[i + 1]);
    }
}

template <size_t Channels>
void resample_wide_rows(const uint16_t* in, const FilterTable& table, uint16_t* out) {
    const float* weights = table.precise.data();
    for (const FilterTable::Taps& taps : table.taps) {
        float sum[Channels] = {};
        for (uint32_t i = 0; i < taps.count; ++i)
            for (size_t c = 0; c < Channels; ++c)
                sum[c] += static_cast<float>(in[(taps.first + i) * Channels + c]) * weights[i];
        for (size_t c = 0; c < Channels; ++c)
            out[c] = static_cast<uint16_t>(std::min(sum[c] + 0.5F, 65535.0F));
        out += Channels;
        weights += table.most;
    }
}

void resample_wide_columns(const uint8_t* const* in, uint32_t count, const float* weights,
                           uint16_t* out, size_t size) {
    constexpr size_t block = 64;
    for (size_t x = 0; x < size; x += block) {
        const size_t width = std::min(block, size - x);
        float sum[block] = {};
        for (uint32_t i = 0; i < count; ++i) {
            const auto* row = reinterpret_cast<const uint16_t*>(in[i]) + x;
            for (size_t c = 0; c < width; ++c) sum[c] += static_cast<float>(row[c]) * weights[i];
        }
        for (size_t c = 0; c < width; ++c)
            out[x + c] = static_cast<uint16_t>(std::min(sum[c] + 0.5F, 65535.0F));
    }
}

// One resampling: the first pass makes lines as the second one comes to need them, so that they are
// still in the cache, and keeps only those that one line of the result is made of.
class Resampling {
  public:
    Resampling(const Pixels& from, const Pixels& to, ResampleScratch& scratch)
        : from_(from), to_(to), columns_(scratch.columns), rows_(scratch.rows) {
        // One more line than is needed: they are made in pairs.
        lines_ = rows_.most + 1;
        scratch.lines.resize(columns_.is_copy ? 0 : (lines_ + 1) * line_size());
        memory_ = scratch.lines.data();
    }

    void run() {
        std::vector<const uint8_t*> in(rows_.most);
        for (uint32_t y = 0; y < to_.height; ++y) {
            const FilterTable::Taps taps = rows_.taps[y];
            make_lines(taps.first, taps.first + taps.count);
            for (uint32_t i = 0; i < taps.count; ++i) in[i] = line(taps.first + i);
            const size_t weights = y * rows_.most;
            if (to_.depth == 8)
                kernels_.columns(in.data(), taps.count, &rows_.weights[weights], to_.row(y),
                                 to_.stride());
            else
                resample_wide_columns(in.data(), taps.count, &rows_.precise[weights],
                                      reinterpret_cast<uint16_t*>(to_.row(y)),
                                      to_.stride() / sizeof(uint16_t));
        }
    }

  private:
    // The kernels write a byte more than a line, and even numbers keep 16 bits aligned.
    [[nodiscard]] size_t line_size() const { return to_.stride() + 16; }
    [[nodiscard]] const uint8_t* line(size_t y) const {
        if (columns_.is_copy) return from_.row(y) + columns_.taps[0].first * from_.pixel_size();
        return place(y);
    }
    [[nodiscard]] uint8_t* place(size_t y) const { return memory_ + y % lines_ * line_size(); }

    void make_lines(uint32_t first, uint32_t end) {
        if (columns_.is_copy) return;
        made_ = std::max(made_, first);
        while (made_ < end) {
            if (from_.depth == 8) {
                // A last single line is made twice, once into the spare place.
                const bool pair = made_ + 1 < from_.height;
                kernels_.rows[from_.channels](from_.row(made_), from_.row(made_ + (pair ? 1 : 0)),
                                              columns_, place(made_),
                                              pair ? place(made_ + 1) : spare());
                made_ += pair ? 2 : 1;
            } else {
                make_wide(made_++);
            }
        }
    }
    [[nodiscard]] uint8_t* spare() const { return memory_ + lines_ * line_size(); }
    void make_wide(size_t y) {
        const auto* in = reinterpret_cast<const uint16_t*>(from_.row(y));
        auto* out = reinterpret_cast<uint16_t*>(place(y));
        switch (from_.channels) {
            case 1: return resample_wide_rows<1>(in, columns_, out);
            case 3: return resample_wide_rows<3>(in, columns_, out);
            default: return resample_wide_rows<4>(in, columns_, out);
        }
    }

    const Pixels &from_, &to_;
    const FilterTable &columns_, &rows_;
    const ResampleKernels& kernels_ = resample_kernels();
    size_t lines_;
    uint8_t* memory_;
    uint32_t made_ = 0;  // lines before this one were made, or are not needed
};

}  // namespace

uint64_t resample_memory(uint32_t width, uint32_t height, const ImageGeometry& plan,
                         size_t pixel_size) {
    // Sides are below 2^31, so no product of two of them leaves 64 bits; the sums are compared
    // as double to be safe with three factors.
    const double tables =
        static_cast<double>(most_taps(width, plan.resized_width)) * plan.crop.width * 8 +
        static_cast<double>(most_taps(height, plan.resized_height)) * plan.crop.height * 4;
    const double lines = (static_cast<double>(most_taps(height, plan.resized_height)) + 2) *
                         plan.crop.width * static_cast<double>(pixel_size);
    return static_cast<uint64_t>(std::min(tables + lines, 1e18));
}

void resample(const Pixels& from, const ImageGeometry& plan, const Pixels& to,
              ResampleScratch& scratch) {
    fill_table(scratch.columns, from.width, plan.resized_width, plan.crop.left, plan.crop.width,
               from.depth);
    fill_pairs(scratch.columns);
    fill_table(scratch.rows, from.height, plan.resized_height, plan.crop.top, plan.crop.height,
               from.depth);
    Resampling(from, to, scratch).run();
}

}  // namespace shf
