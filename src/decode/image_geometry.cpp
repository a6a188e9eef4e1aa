#include "decode/image_geometry.h"

#include "core/error.h"
#include "core/random.h"

#include <algorithm>
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

}  // namespace

ImageGeometry plan_image(const ImageHeader& header, const ImageOptions& options, uint64_t random) {
    ImageGeometry plan;
    plan.width = header.lies_on_its_side() ? header.height : header.width;
    plan.height = header.lies_on_its_side() ? header.width : header.height;
    const auto [width, height] = resized(options, plan.width, plan.height);
    if (width > longest_side || height > longest_side)
        throw Error(SHF_E_LIMIT,
                    "an image of " + size_text(plan.width, plan.height) + " becomes one of " +
                        size_text(width, height),
                    "give a smaller resize");
    plan.resized_width = static_cast<uint32_t>(width);
    plan.resized_height = static_cast<uint32_t>(height);
    plan.crop = {0, 0, plan.resized_width, plan.resized_height};
    if (options.crop != ImageOptions::Crop::none) {
        if (options.crop_width > width || options.crop_height > height)
            throw Error(SHF_E_FORMAT,
                        "an image of " + size_text(width, height) + " is smaller than its crop, " +
                            size_text(options.crop_width, options.crop_height),
                        "resize first, so that the shorter side is as long as the crop");
        plan.crop.width = options.crop_width;
        plan.crop.height = options.crop_height;
        if (options.crop == ImageOptions::Crop::centre) {
            plan.crop.left = centred(plan.resized_width, plan.crop.width);
            plan.crop.top = centred(plan.resized_height, plan.crop.height);
        } else {
            Random draw(Random::image_crop, {random});
            plan.crop.top =
                static_cast<uint32_t>(draw.below(height - plan.crop.height + uint64_t{1}));
            plan.crop.left =
                static_cast<uint32_t>(draw.below(width - plan.crop.width + uint64_t{1}));
        }
    }
    plan.flipped = options.flip == ImageOptions::Flip::always ||
                   (options.flip == ImageOptions::Flip::random &&
                    (Random(Random::image_flip, {random}).next() & 1) != 0);
    return plan;
}

}  // namespace shf
