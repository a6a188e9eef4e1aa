// Which rows of a batch are mixed, and how much of each is left: MixUp (Zhang et al.,
// arXiv:1710.09412) and CutMix (Yun et al., arXiv:1905.04899). The pixels stay as they are: the
// user mixes them, on the device where they are.
#pragma once

#include "batch/batch_plan.h"
#include "core/random.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace shf {

// Of each row: the row that it is mixed with (int64), its own share (float32), and with CutMix the
// part of the image that comes from the other row (int64: top, left, bottom, right).
inline constexpr std::string_view index_column = "__mix_index__", weight_column = "__mix_weight__",
                                  box_column = "__mix_box__";

// A number of Beta(alpha, alpha), in 0..1; alpha > 0.
double draw_beta(double alpha, Random& draw);

// Completes the columns of a batch that is to be handed out, when its plan mixes rows; once. Until
// then the index column has the key of each row's random choices. `allocate` gives memory of at
// least so many bytes, or throws.
void mix_rows(Batch& batch, std::span<const ColumnPlan> plans,
              const std::function<StorageRef(uint64_t)>& allocate);

}  // namespace shf
