#include "image/resample.h"

#include "image/resample_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shf {

namespace {

using Filter = ImageOptions::Filter;

// How far from its centre a filter reaches when nothing is reduced, in samples.
double reach_of(Filter filter) {
    switch (filter) {
        case Filter::nearest:
        case Filter::box: return 0.5;
        case Filter::bilinear:
        case Filter::hamming: return 1;
        case Filter::bicubic: return 2;
        case Filter::lanczos: return 3;
    }
    return 1;
}

double sinc(double x) {
    constexpr double pi = 3.14159265358979323846;
    return x == 0 ? 1 : std::sin(x * pi) / (x * pi);
}

// The filters of Pillow's Resample.c.
double weight_at(Filter filter, double x) {
    switch (filter) {
        case Filter::nearest:
        case Filter::box: return x > -0.5 && x <= 0.5 ? 1 : 0;
        case Filter::bilinear: return std::max(1 - std::abs(x), 0.0);
        case Filter::hamming: {
            constexpr double pi = 3.14159265358979323846;
            x = std::abs(x);
            return x >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * std::cos(x * pi));
        }
        case Filter::bicubic: {
            constexpr double a = -0.5;
            x = std::abs(x);
            if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
            return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
        }
        case Filter::lanczos: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
    return 0;
}

double reach(const FilterAxis& axis, Filter filter) {
    return reach_of(filter) * std::max(1.0, axis.size / axis.resized);
}

// The most samples that a filter covers, made even for kernels that take two at once.
size_t most_taps(const FilterAxis& axis, Filter filter) {
    if (filter == Filter::nearest || axis.is_copy()) return 2;
    return static_cast<size_t>(std::ceil(reach(axis, filter))) * 2 + 2;
}

// The one sample that each place is, as ImagingScaleAffine() of Pillow finds it: step by step, with
// the sums rounded.
void fill_nearest(FilterTable& table, const FilterAxis& axis) {
    const double step = axis.size / axis.resized;
    double at = axis.start + step * 0.5;
    for (uint32_t i = 0; i < axis.first + axis.count; ++i, at += step)
        if (i >= axis.first)
            table.taps[i - axis.first] = {std::min(static_cast<uint32_t>(at), axis.limit - 1), 1};
}

// precompute_coeffs() and normalize_coeffs_8bpc() of Pillow.
void fill_table(FilterTable& table, const FilterAxis& axis, Filter filter, uint32_t depth) {
    const double scale = axis.size / axis.resized;
    const double support = reach(axis, filter);
    const double per_sample = 1 / std::max(1.0, scale);
    table.most = most_taps(axis, filter);
    table.is_copy = axis.is_copy();
    table.taps.resize(axis.count);
    table.weights.assign(depth == 8 ? table.most * axis.count : 0, 0);
    table.precise.assign(depth == 8 ? 0 : table.most * axis.count, 0);
    if (table.is_copy || filter == Filter::nearest) {
        for (uint32_t i = 0; i < axis.count; ++i) {
            table.taps[i] = {axis.first + i, 1};
            if (depth == 8)
                table.weights[i * table.most] = 1 << weight_bits;
            else
                table.precise[i * table.most] = 1;
        }
        if (!table.is_copy) fill_nearest(table, axis);
        return;
    }
    std::vector<double> weights(table.most);
    // Thousands of weights that are rounded up would sum to more than one.
    const double rounding = table.most > 8192 ? 0 : 0.5;
    for (uint32_t i = 0; i < axis.count; ++i) {
        const double centre = axis.start + (axis.first + i + 0.5) * scale;
        const auto from = static_cast<uint32_t>(std::max(centre - support + 0.5, 0.0));
        const auto to = static_cast<uint32_t>(
            std::min(centre + support + 0.5, static_cast<double>(axis.limit)));
        table.taps[i] = {from, to - from};
        double sum = 0;
        for (uint32_t k = 0; k < to - from; ++k) {
            weights[k] = weight_at(filter, (k + from - centre + 0.5) * per_sample);
            sum += weights[k];
        }
        for (uint32_t k = 0; k < to - from; ++k) {
            const double weight = sum == 0 ? 0 : weights[k] / sum;
            if (depth == 8)
                table.weights[i * table.most + k] = static_cast<int32_t>(
                    weight * (1 << weight_bits) + (weight < 0 ? -rounding : rounding));
            else
                table.precise[i * table.most + k] = static_cast<float>(weight);
        }
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
            out[c] = static_cast<uint16_t>(std::clamp(sum[c] + 0.5F, 0.0F, 65535.0F));
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
            out[x + c] = static_cast<uint16_t>(std::clamp(sum[c] + 0.5F, 0.0F, 65535.0F));
    }
}

// One resampling: the first pass makes lines as the second one comes to need them, so that they are
// still in the cache, and keeps only those that one line of the result is made of.
class Resampling {
  public:
    Resampling(const Pixels& from, ResampleScratch& scratch)
        : from_(from), columns_(scratch.columns), rows_(scratch.rows) {
        // One more line than is needed: they are made in pairs.
        lines_ = rows_.most + 1;
        scratch.lines.resize(columns_.is_copy ? 0 : (lines_ + 1) * line_size());
        memory_ = scratch.lines.data();
    }

    void run(RowSink& sink) {
        std::vector<const uint8_t*> in(rows_.most);
        for (uint32_t y = 0; y < rows_.taps.size(); ++y) {
            const FilterTable::Taps taps = rows_.taps[y];
            make_lines(taps.first, taps.first + taps.count);
            for (uint32_t i = 0; i < taps.count; ++i) in[i] = line(taps.first + i);
            const size_t weights = y * rows_.most;
            uint8_t* const out = sink.row(y);
            if (taps.count == 1)
                std::memcpy(out, in[0], row_size());
            else if (from_.depth == 8)
                kernels_.columns(in.data(), taps.count, &rows_.weights[weights], out, row_size());
            else
                resample_wide_columns(in.data(), taps.count, &rows_.precise[weights],
                                      reinterpret_cast<uint16_t*>(out),
                                      row_size() / sizeof(uint16_t));
            sink.done(y);
        }
    }

  private:
    // The kernels write a byte more than a line, and even numbers keep 16 bits aligned.
    [[nodiscard]] size_t line_size() const { return (row_size() + 17) / 2 * 2; }
    [[nodiscard]] size_t row_size() const { return columns_.taps.size() * from_.pixel_size(); }
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

    const Pixels& from_;
    const FilterTable &columns_, &rows_;
    const ResampleKernels& kernels_ = resample_kernels();
    size_t lines_;
    uint8_t* memory_;
    uint32_t made_ = 0;  // lines before this one were made, or are not needed
};

}  // namespace

void FilterTable::fill_pairs() {
    pairs.resize(weights.size());
    for (size_t i = 0; i < weights.size(); i += 2) {
        pairs[i] = pair_high(weights[i], weights[i + 1]);
        pairs[i + 1] = pair_low(weights[i], weights[i + 1]);
    }
}

void FilterTable::move(int64_t by) {
    for (Taps& tap : taps) tap.first = static_cast<uint32_t>(tap.first + by);
}

uint64_t resample_memory(const FilterAxis& columns, const FilterAxis& rows,
                         ImageOptions::Filter filter, size_t pixel_size) {
    // Sides are below 2^31, so no product of two of them leaves 64 bits; the sums are compared
    // as double to be safe with three factors.
    const double tables = static_cast<double>(most_taps(columns, filter)) * columns.count * 8 +
                          static_cast<double>(most_taps(rows, filter)) * rows.count * 4;
    const double lines = (static_cast<double>(most_taps(rows, filter)) + 2) * columns.count *
                         static_cast<double>(pixel_size);
    return static_cast<uint64_t>(std::min(tables + lines, 1e18));
}

void plan_resample(const FilterAxis& columns, const FilterAxis& rows, ImageOptions::Filter filter,
                   uint32_t depth, ResampleScratch& scratch) {
    fill_table(scratch.columns, columns, filter, depth);
    scratch.columns.fill_pairs();
    fill_table(scratch.rows, rows, filter, depth);
}

void resample(const Pixels& from, ResampleScratch& scratch, RowSink& sink) {
    Resampling(from, scratch).run(sink);
}

}  // namespace shf
