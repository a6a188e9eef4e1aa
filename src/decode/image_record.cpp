#include "decode/image_record.h"

#include "image/image_augment.h"
#include "image/image_colours.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace shf {

namespace {

using Json = nlohmann::ordered_json;

Json numbers_of(const CropBox& box) {
    return {box.left, box.top, box.width, box.height};
}

// From a place in the image to one in the result.
Affine matrix_of(const ImageGeometry& plan, const AugmentChoices& augment) {
    const auto along = [](double* row, size_t axis, uint32_t source, uint32_t size,
                          uint32_t resized, double moved) {
        const double scale = static_cast<double>(resized) / size;
        row[0] = row[1] = 0;
        row[axis] = scale;
        row[2] = moved - source * scale;
    };
    Affine matrix;
    along(matrix.x, 0, plan.source.left, plan.source.width, plan.resized_width,
          static_cast<double>(plan.left) - plan.crop.left);
    along(matrix.y, 1, plan.source.top, plan.source.height, plan.resized_height,
          static_cast<double>(plan.top) - plan.crop.top);
    const double width = plan.result_width;
    if (plan.flipped) matrix = matrix.then({{-1, 0, width}, {0, 1, 0}});
    for (size_t i = 0; i < augment.count; ++i)
        matrix = matrix.then(movement(augment.steps[i], plan.result_width, plan.result_height));
    return matrix;
}

// Nine of them: what one machine rounds otherwise than another is in none. No -0.
double decimals(double number) {
    constexpr double one = 1e9;
    return std::round(number * one) / one + 0.0;
}

Json colours_of(const ColourChoices& choices) {
    // In the order of ColourChoices::Kind.
    constexpr const char* names[] = {"brightness", "contrast", "saturation", "hue"};
    Json changes = Json::array();
    for (size_t i = 0; i < choices.count; ++i)
        changes.push_back(Json::array({names[static_cast<size_t>(choices.changes[i].kind)],
                                       static_cast<double>(choices.changes[i].factor)}));
    return changes;
}

}  // namespace

std::string image_record(const ImageOptions& options, const ImageGeometry& drawn, uint64_t random) {
    const ImageGeometry plan = flipped_last(drawn);
    const AugmentChoices augment =
        draw_augment(options.augment, plan.result_width, plan.result_height, random);
    const Affine matrix = matrix_of(plan, augment);
    Json record = {
        {"image", {plan.width, plan.height}},
        {"part", numbers_of(plan.source)},
        {"resize", {plan.resized_width, plan.resized_height}},
        {"crop", numbers_of(plan.crop)},
        {"place", {plan.left, plan.top}},
        {"size", {plan.result_width, plan.result_height}},
        {"flip", plan.flipped},
        {"matrix",
         {decimals(matrix.x[0]), decimals(matrix.x[1]), decimals(matrix.x[2]),
          decimals(matrix.y[0]), decimals(matrix.y[1]), decimals(matrix.y[2])}},
    };
    if (options.augment.set != ImageOptions::Augment::Set::none) {
        Json steps = Json::array();
        for (size_t i = 0; i < augment.count; ++i)
            steps.push_back(Json::array(
                {operation_name(augment.steps[i].operation), augment.steps[i].magnitude}));
        record["augment"] = std::move(steps);
    }
    if (options.colours != ImageOptions::Colours()) {
        const ColourChoices colours = draw_colours(options.colours, random);
        record["colours"] = colours_of(colours);
        record["grayscale"] = colours.grayscale;
        record["blur"] = colours.sigma > 0 ? Json(decimals(colours.sigma)) : Json();
        record["solarize"] = colours.solarize;
    }
    return record.dump();
}

}  // namespace shf
