#include "image/image_colours.h"

#include "core/random.h"
#include "image/image_blur.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace shf {

namespace {

constexpr size_t channels = 3;

size_t count_of(const Pixels& pixels) {
    return size_t{pixels.width} * pixels.height;
}

// Rounded down, as the conversion of tensors does it.
uint8_t level(float number) {
    return static_cast<uint8_t>(std::clamp(number, 0.0F, 255.0F));
}

float grey_of(const uint8_t* pixel) {
    return static_cast<float>(pixel[0]) * 0.2989F + static_cast<float>(pixel[1]) * 0.587F +
           static_cast<float>(pixel[2]) * 0.114F;
}

void change_brightness(const Pixels& pixels, float factor) {
    std::array<uint8_t, 256> table;
    for (size_t i = 0; i < table.size(); ++i) table[i] = level(static_cast<float>(i) * factor);
    uint8_t* const data = pixels.data;
    for (size_t i = 0; i < count_of(pixels) * channels; ++i) data[i] = table[data[i]];
}

void change_contrast(const Pixels& pixels, float factor) {
    const uint8_t* pixel = pixels.data;
    uint64_t sum = 0;
    for (size_t i = count_of(pixels); i-- > 0; pixel += channels)
        sum += static_cast<uint64_t>(grey_of(pixel));
    const auto mean =
        static_cast<float>(static_cast<double>(sum) / static_cast<double>(count_of(pixels)));
    std::array<uint8_t, 256> table;
    for (size_t i = 0; i < table.size(); ++i)
        table[i] = level(static_cast<float>(i) * factor + mean * (1 - factor));
    uint8_t* const data = pixels.data;
    for (size_t i = 0; i < count_of(pixels) * channels; ++i) data[i] = table[data[i]];
}

void change_saturation(const Pixels& pixels, float factor) {
    uint8_t* pixel = pixels.data;
    for (size_t i = count_of(pixels); i-- > 0; pixel += channels) {
        const float grey = std::floor(grey_of(pixel)) * (1 - factor);
        for (size_t c = 0; c < channels; ++c)
            pixel[c] = level(static_cast<float>(pixel[c]) * factor + grey);
    }
}

// Through hue, saturation and value.
void change_hue(const Pixels& pixels, float turn) {
    uint8_t* pixel = pixels.data;
    for (size_t i = count_of(pixels); i-- > 0; pixel += channels) {
        const float r = static_cast<float>(pixel[0]) / 255, g = static_cast<float>(pixel[1]) / 255,
                    b = static_cast<float>(pixel[2]) / 255;
        const float most = std::max({r, g, b}), range = most - std::min({r, g, b});
        if (range == 0) continue;  // grey has no hue
        float hue = most == r   ? (g - b) / range
                    : most == g ? 2 + (b - r) / range
                                : 4 + (r - g) / range;
        hue = std::fmod(hue / 6 + 1, 1.0F) + turn;
        hue = (hue - std::floor(hue)) * 6;
        const float sector = std::floor(hue), part = hue - sector, saturation = range / most;
        const float falling = most * (1 - saturation * part),
                    rising = most * (1 - saturation * (1 - part)), least = most * (1 - saturation);
        const std::array<std::array<float, 3>, 6> colours = {{{most, rising, least},
                                                              {falling, most, least},
                                                              {least, most, rising},
                                                              {least, falling, most},
                                                              {rising, least, most},
                                                              {most, least, falling}}};
        const auto& colour = colours[static_cast<size_t>(sector) % colours.size()];
        for (size_t c = 0; c < channels; ++c) pixel[c] = level(colour[c] * 255.999F);
    }
}

void drop_colours(const Pixels& pixels) {
    uint8_t* pixel = pixels.data;
    for (size_t i = count_of(pixels); i-- > 0; pixel += channels)
        std::fill_n(pixel, channels, level(grey_of(pixel)));
}

void solarize(const Pixels& pixels) {
    uint8_t* const data = pixels.data;
    for (size_t i = 0; i < count_of(pixels) * channels; ++i)
        data[i] = data[i] >= 128 ? static_cast<uint8_t>(255 - data[i]) : data[i];
}

}  // namespace

ColourChoices draw_colours(const ImageOptions::Colours& colours, uint64_t random) {
    using Kind = ColourChoices::Kind;
    // All are drawn, so that a word more changes nothing of the others.
    Random draw(Random::image_colour, {random});
    ColourChoices choices;
    const bool jitters = draw.uniform(0, 1) < colours.jitter;
    choices.grayscale = draw.uniform(0, 1) < colours.grayscale;
    choices.solarize = draw.uniform(0, 1) < colours.solarize;
    struct Drawn {
        Kind kind;
        ImageOptions::Range range;
        double nothing;
        float factor = 0;
    };
    std::array<Drawn, 4> changes = {{{Kind::brightness, colours.brightness, 1},
                                     {Kind::contrast, colours.contrast, 1},
                                     {Kind::saturation, colours.saturation, 1},
                                     {Kind::hue, colours.hue, 0}}};
    for (Drawn& change : changes)
        change.factor = static_cast<float>(draw.uniform(change.range.least, change.range.most));
    for (size_t left = changes.size(); left > 1; --left)
        std::swap(changes[left - 1], changes[draw.below(left)]);
    for (const Drawn& change : changes)
        if (jitters && change.range != ImageOptions::Range{change.nothing, change.nothing})
            choices.changes[choices.count++] = {change.kind, change.factor};
    const bool blurs = draw.uniform(0, 1) < colours.blur;
    const double sigma = draw.uniform(colours.sigma.least, colours.sigma.most);
    choices.sigma = blurs ? sigma : 0;
    return choices;
}

void change_colour(const Pixels& pixels, const ColourChoices::Change& change) {
    // In the order of ColourChoices::Kind.
    constexpr void (*functions[])(const Pixels&, float) = {change_brightness, change_contrast,
                                                           change_saturation, change_hue};
    functions[static_cast<size_t>(change.kind)](pixels, change.factor);
}

Pixels change_colours(const Pixels& pixels, const ColourChoices& choices, uint32_t kernel,
                      PixelBuffer& blurred, ResampleScratch& scratch) {
    for (size_t i = 0; i < choices.count; ++i) change_colour(pixels, choices.changes[i]);
    if (choices.grayscale) drop_colours(pixels);
    Pixels result = pixels;
    if (choices.sigma > 0) {
        blurred.hold(result);
        blur(pixels, result, kernel, choices.sigma, scratch);
    }
    if (choices.solarize) solarize(result);
    return result;
}

void make_coloured(const Pixels& grey, const Pixels& to) {
    for (size_t i = 0; i < count_of(grey); ++i)
        std::fill_n(to.data + i * channels, channels, grey.data[i]);
}

}  // namespace shf
