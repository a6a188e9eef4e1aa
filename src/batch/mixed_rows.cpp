#include "batch/mixed_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace shf {

namespace {

struct ImageSides {
    int64_t height = 0, width = 0;
};

// Of the images of a column, which are all of one size; 0 where it has none.
ImageSides sides_of(const BatchColumn& column, bool channels_first, uint64_t rows) {
    std::array<int64_t, max_row_dimensions> shape = column.row.shape;
    const auto ndim = static_cast<size_t>(column.row.ndim);
    const int64_t* shapes = column.shapes();
    for (uint64_t row = 0; shapes && row < rows; ++row) {
        std::copy_n(shapes + row * ndim, ndim, shape.begin());
        if (shape[0] > 0) break;  // else the sample has no image
    }
    const size_t first = ndim == 3 && channels_first ? 1 : 0;
    return {shape[first], shape[first + 1]};
}

using MixBox = std::array<int64_t, 4>;  // top, left, bottom, right

// CutMix.make_params() of torchvision: in the middle of the box is any pixel, and what lies beside
// the image is cut off.
MixBox draw_box(double share, const ImageSides& sides, Random& draw) {
    const auto middle = [&](int64_t side) {
        return static_cast<int64_t>(draw.below(static_cast<uint64_t>(side)));
    };
    const int64_t x = middle(sides.width), y = middle(sides.height);
    const double half = 0.5 * std::sqrt(1 - share);
    const auto half_width = static_cast<int64_t>(half * static_cast<double>(sides.width));
    const auto half_height = static_cast<int64_t>(half * static_cast<double>(sides.height));
    return {std::max<int64_t>(y - half_height, 0), std::max<int64_t>(x - half_width, 0),
            std::min(y + half_height, sides.height), std::min(x + half_width, sides.width)};
}

// What is left of an image outside the box.
double share_outside(const MixBox& box, const ImageSides& sides) {
    const auto area = static_cast<double>((box[2] - box[0]) * (box[3] - box[1]));
    return 1 - area / (static_cast<double>(sides.width) * static_cast<double>(sides.height));
}

// A number of 8 bytes or less for each row, or some.
BatchColumn new_column(std::string_view name, DType dtype, int64_t numbers, uint64_t rows,
                       const std::function<StorageRef(uint64_t)>& allocate) {
    BatchColumn column;
    column.name = name;
    column.kind = dtype == DType::f32 ? ColumnSpec::Kind::real : ColumnSpec::Kind::integer;
    column.dtype = column.row.dtype = dtype;
    if (numbers > 1) {
        column.row.ndim = 1;
        column.row.shape[0] = numbers;
    }
    column.bytes = rows * column.row.bytes();
    column.values = allocate(std::max<uint64_t>(column.bytes, 1));
    return column;
}

// The rows in a circle, each with the next one: Sattolo's algorithm gives every circle of all rows
// with the same chance. So no row is mixed with itself, where there are two.
void pair_up(std::span<int64_t> partners, Random& draw) {
    std::iota(partners.begin(), partners.end(), int64_t{0});
    for (size_t i = partners.size(); i-- > 1;)
        std::swap(partners[i], partners[static_cast<size_t>(draw.below(i))]);
}

}  // namespace

// Devroye, "Random Variate Generation in One Line of Code" (WSC 1996), of Bailey's variate of the t
// distribution (Mathematics of Computation 62, 1994). Two draws for every alpha.
double draw_beta(double alpha, Random& draw) {
    const double u = 1 - draw.uniform(0, 1);  // above 0
    const double cosine = std::cos(2 * std::acos(-1.0) * draw.uniform(0, 1));
    const double c = (std::pow(u, -1 / alpha) - 1) * cosine * cosine;
    // As it is (1 - root) / 2, without the digits that cancel where it is near 0.
    const double root = 1 / std::sqrt(1 + 1 / c);
    const double lower = 0.5 / ((1 + c) * (1 + root));
    return cosine < 0 ? lower : 1 - lower;
}

void mix_rows(Batch& batch, std::span<const ColumnPlan> plans,
              const std::function<StorageRef(uint64_t)>& allocate) {
    const auto pairs = std::find_if(plans.begin(), plans.end(),
                                    [](const ColumnPlan& plan) { return plan.spec.pairs; });
    if (pairs == plans.end() || batch.rows == 0) return;
    const auto images = std::find_if(plans.begin(), plans.end(),
                                     [](const ColumnPlan& plan) { return plan.spec.mixing.any(); });
    const RowMixing mixing = images->spec.mixing;
    const size_t number = static_cast<size_t>(pairs - plans.begin());
    const ImageSides sides = sides_of(batch.columns[static_cast<size_t>(images - plans.begin())],
                                      images->spec.image.channels_first, batch.rows);
    const std::span<int64_t> partners{
        reinterpret_cast<int64_t*>(batch.columns[number].values->data),
        static_cast<size_t>(batch.rows)};
    std::vector<BatchColumn> added;
    added.push_back(new_column(weight_column, DType::f32, 1, batch.rows, allocate));
    auto* weights = reinterpret_cast<float*>(added[0].values->data);
    int64_t* boxes = nullptr;
    if (mixing.cutmix > 0) {
        added.push_back(new_column(box_column, DType::i64, 4, batch.rows, allocate));
        boxes = reinterpret_cast<int64_t*>(added[1].values->data);
    }
    batch.columns.reserve(batch.columns.size() + added.size());
    uint64_t key = 0;  // of all rows, in their order
    for (const int64_t of_row : partners) {
        const auto random = static_cast<uint64_t>(of_row);
        key = Random(Random::row_pairs, {key, random}).next();
        Random draw(Random::row_mixing, {random});
        const bool both = mixing.mixup > 0 && mixing.cutmix > 0;
        const bool cuts = mixing.mixup == 0 || (both && draw.below(2) != 0);
        double share = draw_beta(cuts ? mixing.cutmix : mixing.mixup, draw);
        MixBox box{0, 0, sides.height, sides.width};
        if (cuts && sides.height > 0 && sides.width > 0) {
            box = draw_box(share, sides, draw);
            share = share_outside(box, sides);
        }
        *weights++ = static_cast<float>(share);
        if (boxes) boxes = std::copy(box.begin(), box.end(), boxes);
    }
    Random draw(Random::row_pairs, {key});
    pair_up(partners, draw);
    batch.columns.insert(batch.columns.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                         std::make_move_iterator(added.begin()),
                         std::make_move_iterator(added.end()));
}

}  // namespace shf
