#include "image/image_geometry.h"

#include "core/error.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace shf {

namespace {

constexpr uint64_t longest_side = std::numeric_limits<int32_t>::max();

std::string size_text(uint64_t width, uint64_t height) {
    return std::to_string(width) + "x" + std::to_string(height);
}

// size * numerator / denominator, rounded down, at least 1. All are below 2^32.
uint64_t in_proportion(uint64_t size, uint64_t numerator, uint64_t denominator) {
    return std::max<uint64_t>(size * numerator / denominator, 1);
}

std::pair<uint64_t, uint64_t> resized(const ImageOptions& options, uint64_t width,
                                      uint64_t height) {
    const uint64_t to_width = options.width, to_height = options.height;
    switch (options.resize) {
        case ImageOptions::Resize::none: return {width, height};
        case ImageOptions::Resize::exact: return {to_width, to_height};
        case ImageOptions::Resize::shorter:
            if (width <= height) return {to_width, in_proportion(to_width, height, width)};
            return {in_proportion(to_width, width, height), to_width};
        case ImageOptions::Resize::fit:
            if (to_width * height <= to_height * width)
                return {to_width, in_proportion(to_width, height, width)};
            return {in_proportion(to_height, width, height), to_height};
    }
    return {width, height};
}

// Half of what is left over, rounded to the even number in the middle: CenterCrop of torchvision
// has round() of Python.
uint32_t centred(uint32_t whole, uint32_t part) {
    const uint32_t twice = whole - part, half = twice / 2;
    return half + (twice % 2 != 0 && half % 2 != 0 ? 1 : 0);
}

// RandomResizedCrop.get_params() of torchvision: ten tries, then the largest part in the middle
// whose shape is allowed.
CropBox draw_area(const ImageOptions& options, uint32_t width, uint32_t height, uint64_t random) {
    Random draw(Random::image_area, {random});
    const double area = static_cast<double>(width) * height;
    const double flattest = std::log(options.ratio.most), highest = std::log(options.ratio.least);
    for (int tries = 0; tries < 10; ++tries) {
        const double part = area * draw.uniform(options.scale.least, options.scale.most);
        const double ratio = std::exp(draw.uniform(highest, flattest));
        const double w = std::nearbyint(std::sqrt(part * ratio));
        const double h = std::nearbyint(std::sqrt(part / ratio));
        if (!(w >= 1 && w <= width && h >= 1 && h <= height)) continue;
        CropBox box{0, 0, static_cast<uint32_t>(w), static_cast<uint32_t>(h)};
        box.top = static_cast<uint32_t>(draw.below(height - box.height + uint64_t{1}));
        box.left = static_cast<uint32_t>(draw.below(width - box.width + uint64_t{1}));
        return box;
    }
    CropBox box{0, 0, width, height};
    const double shape = static_cast<double>(width) / height;
    const auto rounded = [](double side, uint32_t most) {
        return static_cast<uint32_t>(
            std::clamp(std::nearbyint(side), 1.0, static_cast<double>(most)));
    };
    if (shape < options.ratio.least) box.height = rounded(width / options.ratio.least, height);
    if (shape > options.ratio.most) box.width = rounded(height * options.ratio.most, width);
    box.left = (width - box.width) / 2;
    box.top = (height - box.height) / 2;
    return box;
}

// Where the option crop lies in an image of this size. Throws Error(FORMAT).
CropBox place_crop(const ImageOptions& options, uint32_t width, uint32_t height, uint64_t random) {
    if (options.crop == ImageOptions::Crop::area) return draw_area(options, width, height, random);
    if (options.crop_width > width || options.crop_height > height)
        throw Error(
            SHF_E_FORMAT,
            "an image of " + size_text(width, height) + " is smaller than its crop, " +
                size_text(options.crop_width, options.crop_height),
            "put a resize before the crop, so that the shorter side is as long as the crop");
    CropBox box{0, 0, options.crop_width, options.crop_height};
    if (options.crop == ImageOptions::Crop::centre) {
        box.left = centred(width, box.width);
        box.top = centred(height, box.height);
    } else {
        Random draw(Random::image_crop, {random});
        box.top = static_cast<uint32_t>(draw.below(height - box.height + uint64_t{1}));
        box.left = static_cast<uint32_t>(draw.below(width - box.width + uint64_t{1}));
    }
    return box;
}

struct Canvas {
    uint32_t width, height;
    uint32_t left, top;  // where the image lies in it
};

Canvas pad_image(const ImageOptions& options, uint32_t width, uint32_t height) {
    switch (options.pad) {
        case ImageOptions::Pad::none: break;
        case ImageOptions::Pad::sides:
            return {width + 2 * options.pad_width, height + 2 * options.pad_height,
                    options.pad_width, options.pad_height};
        case ImageOptions::Pad::size: {
            const uint32_t to_width = std::max(width, options.pad_width);
            const uint32_t to_height = std::max(height, options.pad_height);
            return {to_width, to_height, (to_width - width) / 2, (to_height - height) / 2};
        }
    }
    return {width, height, 0, 0};
}

// The part of the canvas that lies in the box: what it has of the image, and where.
void keep_of_canvas(const Canvas& canvas, const CropBox& box, ImageGeometry& plan) {
    const auto overlap = [](uint32_t at, uint32_t size, uint32_t from, uint32_t length,
                            uint32_t& place, uint32_t& begin, uint32_t& count) {
        const uint32_t first = std::max(at, from);
        const uint32_t end = std::max(std::min(at + size, from + length), first);
        place = std::min(first - from, length);
        begin = std::min(first - at, size);
        count = end - first;
    };
    overlap(canvas.left, plan.resized_width, box.left, box.width, plan.left, plan.crop.left,
            plan.crop.width);
    overlap(canvas.top, plan.resized_height, box.top, box.height, plan.top, plan.crop.top,
            plan.crop.height);
    plan.result_width = box.width;
    plan.result_height = box.height;
}

}  // namespace

ImageGeometry plan_image(const ImageHeader& header, const ImageOptions& options, uint64_t random) {
    ImageGeometry plan;
    plan.width = header.swaps_sides() ? header.height : header.width;
    plan.height = header.swaps_sides() ? header.width : header.height;
    plan.source = {0, 0, plan.width, plan.height};
    const bool flips = options.flip == ImageOptions::Flip::always ||
                       (options.flip == ImageOptions::Flip::random &&
                        (Random(Random::image_flip, {random}).next() & 1) != 0);
    // Of an image that is flipped later than the options say, or not at all.
    const auto crop = [&](uint32_t width, uint32_t height) {
        CropBox box = place_crop(options, width, height, random);
        const bool mirrored = flips && options.flip_before_crop && !plan.source_flipped;
        if (mirrored) box.left = width - box.width - box.left;
        return box;
    };
    const bool crops = options.crop != ImageOptions::Crop::none;
    const bool resizes = options.resize != ImageOptions::Resize::none;
    if (crops && options.crop_first && resizes) plan.source = crop(plan.width, plan.height);
    const auto [width, height] = resized(options, plan.source.width, plan.source.height);
    if (width > longest_side || height > longest_side)
        throw Error(SHF_E_LIMIT,
                    "an image of " + size_text(plan.source.width, plan.source.height) +
                        " becomes one of " + size_text(width, height),
                    "give a smaller resize");
    plan.resized_width = static_cast<uint32_t>(width);
    plan.resized_height = static_cast<uint32_t>(height);
    plan.source_flipped = flips && options.flip_before_resize && plan.is_resized();
    plan.flipped = flips && !plan.source_flipped;
    plan.crop = {0, 0, plan.resized_width, plan.resized_height};
    const bool crops_later = crops && !(options.crop_first && resizes);
    if (crops_later && options.crop_before_pad)
        plan.crop = crop(plan.resized_width, plan.resized_height);
    const CropBox kept = plan.crop;
    Canvas canvas = pad_image(options, kept.width, kept.height);
    if (plan.flipped && options.flip_before_pad)
        canvas.left = canvas.width - kept.width - canvas.left;
    if (canvas.width > longest_side || canvas.height > longest_side)
        throw Error(SHF_E_LIMIT,
                    "an image of " + size_text(kept.width, kept.height) + " is padded to one of " +
                        size_text(canvas.width, canvas.height),
                    "give a smaller pad");
    plan.result_width = canvas.width;
    plan.result_height = canvas.height;
    plan.left = canvas.left;
    plan.top = canvas.top;
    if (crops_later && !options.crop_before_pad)
        keep_of_canvas(canvas, crop(canvas.width, canvas.height), plan);
    return plan;
}

ImageGeometry flipped_last(ImageGeometry plan) {
    if (!plan.source_flipped) return plan;
    plan.crop.left = plan.resized_width - plan.crop.left - plan.crop.width;
    plan.left = plan.result_width - plan.left - plan.crop.width;
    plan.source_flipped = false;
    plan.flipped = true;
    return plan;
}

uint64_t choices_of_view(const ImageOptions& options, uint64_t random) {
    if (options.view == 0) return random;
    return Random(Random::image_view, {random, options.view}).next();
}

}  // namespace shf
