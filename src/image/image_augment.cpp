#include "image/image_augment.h"

#include "core/random.h"
#include "image/image_colours.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace shf {

namespace {

using Operation = AugmentChoices::Operation;
using Set = ImageOptions::Augment::Set;

constexpr size_t rgb_channels = 3;
// num_magnitude_bins of torchvision.
constexpr uint32_t bins = 31;

// What an operation has of magnitudes in a set: from the first bin up to the last one.
struct Space {
    const char* name;
    float first, last[2];  // of RandAugment and TrivialAugment Wide
    bool is_signed;
    bool is_drawn;  // false: it has no magnitude
};
constexpr Space spaces[] = {
    {"Identity", 0, {0, 0}, false, false},        {"ShearX", 0, {0.3F, 0.99F}, true, true},
    {"ShearY", 0, {0.3F, 0.99F}, true, true},     {"TranslateX", 0, {0, 32}, true, true},
    {"TranslateY", 0, {0, 32}, true, true},       {"Rotate", 0, {30, 135}, true, true},
    {"Brightness", 0, {0.9F, 0.99F}, true, true}, {"Color", 0, {0.9F, 0.99F}, true, true},
    {"Contrast", 0, {0.9F, 0.99F}, true, true},   {"Sharpness", 0, {0.9F, 0.99F}, true, true},
    {"Posterize", 8, {4, 2}, false, true},        {"Solarize", 1, {0, 0}, false, true},
    {"AutoContrast", 0, {0, 0}, false, false},    {"Equalize", 0, {0, 0}, false, false},
};

// torch.linspace(first, last, 31)[bin], which counts from the nearer end.
float bin_of(float first, float last, uint32_t bin) {
    const float step = (last - first) / static_cast<float>(bins - 1);
    if (bin < bins / 2) return first + step * static_cast<float>(bin);
    return last - step * static_cast<float>(bins - 1 - bin);
}

double magnitude_of(Operation operation, Set set, uint32_t bin, uint32_t width, uint32_t height) {
    const Space& space = spaces[static_cast<size_t>(operation)];
    float last = space.last[set == Set::randaugment ? 0 : 1];
    if (set == Set::randaugment && operation == Operation::translate_x)
        last = static_cast<float>(150.0 / 331.0 * width);
    if (set == Set::randaugment && operation == Operation::translate_y)
        last = static_cast<float>(150.0 / 331.0 * height);
    if (operation == Operation::posterize)
        return std::nearbyint(8.0 - bin * (8.0 - double{last}) / (bins - 1));
    return bin_of(space.first, last, bin);
}

constexpr double pi = 3.14159265358979323846;

// Which pixel of the image the pixel (x, y) of the result is, both counted from the middle of the
// image: the inverse matrix that torchvision makes of an operation.
Affine source_of(const AugmentChoices::Step& step, uint32_t width, uint32_t height) {
    Affine source;
    const double magnitude = step.magnitude;
    switch (step.operation) {
        case Operation::shear_x:
            source.x[1] = magnitude;
            source.x[2] = magnitude * height / 2;
            break;
        case Operation::shear_y:
            source.y[0] = magnitude;
            source.y[2] = magnitude * width / 2;
            break;
        case Operation::translate_x: source.x[2] = -std::trunc(magnitude); break;
        case Operation::translate_y: source.y[2] = -std::trunc(magnitude); break;
        case Operation::rotate: {
            const double angle = -magnitude * pi / 180;
            source.x[0] = source.y[1] = std::cos(angle);
            source.x[1] = std::sin(angle);
            source.y[0] = -std::sin(angle);
            break;
        }
        default: break;
    }
    return source;
}

// In the steps of grid_sample(), in 32 bits: where a pixel lies just between two others, rounding
// decides.
class Grid {
  public:
    Grid(const Affine& source, uint32_t width, uint32_t height)
        : half_width_(static_cast<float>(width) / 2), half_height_(static_cast<float>(height) / 2) {
        for (size_t i = 0; i < 3; ++i) {
            x_[i] = static_cast<float>(source.x[i]) / half_width_;
            y_[i] = static_cast<float>(source.y[i]) / half_height_;
        }
    }
    // The place in the image, whose first pixel is at 0.
    [[nodiscard]] std::pair<float, float> at(uint32_t column, uint32_t row) const {
        const float x = static_cast<float>(column) + 0.5F - half_width_;
        const float y = static_cast<float>(row) + 0.5F - half_height_;
        return {(x * x_[0] + y * x_[1] + x_[2] + 1) * half_width_ - 0.5F,
                (x * y_[0] + y * y_[1] + y_[2] + 1) * half_height_ - 0.5F};
    }

  private:
    float half_width_, half_height_;
    float x_[3], y_[3];
};

const uint8_t* pixel_at(const Pixels& pixels, float x, float y) {
    if (!(x >= 0 && y >= 0 && x < static_cast<float>(pixels.width) &&
          y < static_cast<float>(pixels.height)))
        return nullptr;
    return pixels.row(static_cast<size_t>(y)) + static_cast<size_t>(x) * pixels.pixel_size();
}

void sample_nearest(const Pixels& from, float x, float y, uint8_t fill, uint8_t* out) {
    if (const uint8_t* pixel = pixel_at(from, std::nearbyint(x), std::nearbyint(y)))
        std::copy_n(pixel, from.pixel_size(), out);
    else
        std::fill_n(out, from.pixel_size(), fill);
}

// Three channels of 8 bits.
void sample_bilinear(const Pixels& from, float x, float y, uint8_t fill, uint8_t* out) {
    const float left = std::floor(x), top = std::floor(y);
    const float right = x - left, bottom = y - top;  // the weights of these
    const struct {
        float x, y, weight;
    } corners[] = {{left, top, (1 - right) * (1 - bottom)},
                   {left + 1, top, right * (1 - bottom)},
                   {left, top + 1, (1 - right) * bottom},
                   {left + 1, top + 1, right * bottom}};
    float sums[rgb_channels] = {}, inside = 0;
    for (const auto& corner : corners) {
        const uint8_t* const pixel = pixel_at(from, corner.x, corner.y);
        if (!pixel) continue;
        inside += corner.weight;
        for (size_t c = 0; c < rgb_channels; ++c)
            sums[c] += static_cast<float>(pixel[c]) * corner.weight;
    }
    // A fill of 0 is torchvision's None.
    const auto level = static_cast<float>(fill);
    for (size_t c = 0; c < rgb_channels; ++c) {
        const float sum = fill == 0 ? sums[c] : (sums[c] - level) * inside + level;
        out[c] = static_cast<uint8_t>(std::clamp(std::nearbyint(sum), 0.0F, 255.0F));
    }
}

void move(const Pixels& pixels, const Affine& source, bool bilinear, uint8_t fill,
          PixelBuffer& spare) {
    const Grid grid(source, pixels.width, pixels.height);
    Pixels moved = pixels;
    spare.hold(moved);
    for (uint32_t y = 0; y < moved.height; ++y) {
        uint8_t* out = moved.row(y);
        for (uint32_t x = 0; x < moved.width; ++x, out += moved.pixel_size()) {
            const auto [at_x, at_y] = grid.at(x, y);
            (bilinear ? sample_bilinear : sample_nearest)(pixels, at_x, at_y, fill, out);
        }
    }
    std::memcpy(pixels.data, moved.data, moved.stride() * moved.height);
}

bool moves(Operation operation) {
    return operation >= Operation::shear_x && operation <= Operation::rotate;
}

// Borders stay as they are.
void sharpen(const Pixels& pixels, float factor, PixelBuffer& spare) {
    if (pixels.width <= 2 || pixels.height <= 2) return;
    Pixels smooth = pixels;
    spare.hold(smooth);
    const size_t stride = pixels.stride();
    for (uint32_t y = 1; y + 1 < pixels.height; ++y) {
        uint8_t* const out = smooth.row(y);
        const uint8_t* const in = pixels.row(y);
        for (size_t i = rgb_channels; i < stride - rgb_channels; ++i) {
            const auto three = [&](const uint8_t* row) {
                return uint32_t{row[i - rgb_channels]} + row[i] + row[i + rgb_channels];
            };
            const uint32_t sum = three(in - stride) + three(in) + three(in + stride) + 4U * in[i];
            out[i] = static_cast<uint8_t>((sum * 2 + 13) / 26);
        }
    }
    for (uint32_t y = 1; y + 1 < pixels.height; ++y) {
        uint8_t* const out = pixels.row(y);
        const uint8_t* const in = smooth.row(y);
        for (size_t i = rgb_channels; i < stride - rgb_channels; ++i) {
            const auto level = static_cast<float>(out[i]);
            const float sharp = level + (static_cast<float>(in[i]) - level) * (1 - factor);
            out[i] = static_cast<uint8_t>(std::clamp(sharp, 0.0F, 255.0F));
        }
    }
}

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<uint64_t, 256>;

template <typename Make>
void map_channels(const Pixels& pixels, const Make& make) {
    const size_t size = pixels.stride() * pixels.height;
    std::array<Histogram, rgb_channels> histograms{};
    for (size_t i = 0; i < size; i += rgb_channels)
        for (size_t c = 0; c < rgb_channels; ++c) ++histograms[c][pixels.data[i + c]];
    std::array<Table, rgb_channels> tables;
    for (size_t c = 0; c < rgb_channels; ++c) tables[c] = make(histograms[c]);
    for (size_t i = 0; i < size; i += rgb_channels)
        for (size_t c = 0; c < rgb_channels; ++c)
            pixels.data[i + c] = tables[c][pixels.data[i + c]];
}

Table same_levels() {
    Table table;
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i);
    return table;
}

Table stretched(const Histogram& histogram) {
    Table table = same_levels();
    const auto is_there = [](uint64_t count) { return count > 0; };
    const auto darkest = std::find_if(histogram.begin(), histogram.end(), is_there);
    const auto brightest = std::find_if(histogram.rbegin(), histogram.rend(), is_there);
    const auto least = static_cast<float>(darkest - histogram.begin());
    const auto most = static_cast<float>(histogram.rend() - brightest - 1);
    if (!(least < most)) return table;
    const float scale = (most - least) * (1.0F / 255);
    for (size_t i = 0; i < table.size(); ++i)
        table[i] =
            static_cast<uint8_t>(std::clamp((static_cast<float>(i) - least) / scale, 0.0F, 255.0F));
    return table;
}

// Pillow's scheme, which torchvision follows.
Table equalized(const Histogram& histogram) {
    Table table = same_levels();
    uint64_t pixels = 0, last = 0;
    for (const uint64_t count : histogram) {
        pixels += count;
        if (count > 0) last = count;
    }
    const uint64_t step = (pixels - last) / 255;
    if (step == 0) return table;
    uint64_t before = 0;
    for (size_t i = 0; i < table.size(); ++i) {
        table[i] = i == 0
                       ? uint8_t{0}
                       : static_cast<uint8_t>(std::min<uint64_t>((before + step / 2) / step, 255));
        before += histogram[i];
    }
    return table;
}

void map_levels(const Pixels& pixels, const Table& table) {
    const size_t size = pixels.stride() * pixels.height;
    for (size_t i = 0; i < size; ++i) pixels.data[i] = table[pixels.data[i]];
}

}  // namespace

Affine Affine::then(const Affine& next) const {
    Affine both;
    for (size_t i = 0; i < 3; ++i) {
        both.x[i] = next.x[0] * x[i] + next.x[1] * y[i] + (i == 2 ? next.x[2] : 0);
        both.y[i] = next.y[0] * x[i] + next.y[1] * y[i] + (i == 2 ? next.y[2] : 0);
    }
    return both;
}

const char* operation_name(Operation operation) {
    return spaces[static_cast<size_t>(operation)].name;
}

AugmentChoices draw_augment(const ImageOptions::Augment& augment, uint32_t width, uint32_t height,
                            uint64_t random) {
    AugmentChoices choices;
    if (augment.set == Set::none) return choices;
    Random draw(Random::image_augment, {random});
    for (; choices.count < augment.operations; ++choices.count) {
        AugmentChoices::Step& step = choices.steps[choices.count];
        step.operation = static_cast<Operation>(draw.below(std::size(spaces)));
        const auto bin = static_cast<uint32_t>(draw.below(bins));
        const bool negative = (draw.next() & 1) != 0;
        const Space& space = spaces[static_cast<size_t>(step.operation)];
        if (!space.is_drawn) continue;
        step.magnitude =
            magnitude_of(step.operation, augment.set,
                         augment.set == Set::randaugment ? augment.magnitude : bin, width, height);
        if (space.is_signed && negative) step.magnitude = -step.magnitude;
    }
    return choices;
}

Affine movement(const AugmentChoices::Step& step, uint32_t width, uint32_t height) {
    // The inverse of a matrix whose determinant is 1, between the middle and the corner.
    const Affine source = source_of(step, width, height);
    Affine inverse;
    inverse.x[0] = source.y[1];
    inverse.x[1] = -source.x[1];
    inverse.y[0] = -source.y[0];
    inverse.y[1] = source.x[0];
    inverse.x[2] = -(inverse.x[0] * source.x[2] + inverse.x[1] * source.y[2]);
    inverse.y[2] = -(inverse.y[0] * source.x[2] + inverse.y[1] * source.y[2]);
    const double half_width = width / 2.0, half_height = height / 2.0;
    return Affine{{1, 0, -half_width}, {0, 1, -half_height}}.then(inverse).then(
        {{1, 0, half_width}, {0, 1, half_height}});
}

void augment_mask(const Pixels& pixels, const AugmentChoices& choices, uint8_t fill,
                  PixelBuffer& spare) {
    for (size_t i = 0; i < choices.count; ++i)
        if (const auto& step = choices.steps[i]; moves(step.operation))
            move(pixels, source_of(step, pixels.width, pixels.height), false, fill, spare);
}

void augment(const Pixels& pixels, const AugmentChoices& choices, bool bilinear, uint8_t fill,
             PixelBuffer& spare) {
    using Kind = ColourChoices::Kind;
    for (size_t i = 0; i < choices.count; ++i) {
        const AugmentChoices::Step& step = choices.steps[i];
        const auto factor = static_cast<float>(1 + step.magnitude);
        switch (step.operation) {
            case Operation::identity: break;
            case Operation::shear_x:
            case Operation::shear_y:
            case Operation::translate_x:
            case Operation::translate_y:
            case Operation::rotate:
                move(pixels, source_of(step, pixels.width, pixels.height), bilinear, fill, spare);
                break;
            case Operation::brightness: change_colour(pixels, {Kind::brightness, factor}); break;
            case Operation::color: change_colour(pixels, {Kind::saturation, factor}); break;
            case Operation::contrast: change_colour(pixels, {Kind::contrast, factor}); break;
            case Operation::sharpness: sharpen(pixels, factor, spare); break;
            case Operation::posterize:
            case Operation::solarize: {
                Table table = same_levels();
                const auto bits = static_cast<uint32_t>(step.magnitude);
                const auto threshold = static_cast<float>(255 * step.magnitude);
                for (uint8_t& level : table) {
                    if (step.operation == Operation::posterize)
                        level = static_cast<uint8_t>(level & (0xff00U >> bits));
                    else if (static_cast<float>(level) >= threshold)
                        level = static_cast<uint8_t>(255 - level);
                }
                map_levels(pixels, table);
                break;
            }
            case Operation::auto_contrast: map_channels(pixels, stretched); break;
            case Operation::equalize: map_channels(pixels, equalized); break;
        }
    }
}

}  // namespace shf
