// What was chosen at random for the row of a sample, as text: the rows of the column "__augment__".
#pragma once

#include "batch/batch_plan.h"
#include "sample/block.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace shf {

// A JSON object: for each column of images, sounds and videos, by name, what was chosen; null where
// the sample lacks the field. `fields` are of the sample's names, `random` is the key of its
// choices; `bytes_of` gives the field of a column, unpacked. Throws Error, with shard, member and
// offset.
std::string chosen_for(const BatchPlan& plan, const BatchPlan::Fields& fields, const Block& block,
                       uint32_t sample, uint64_t random,
                       const std::function<std::span<const uint8_t>(size_t column)>& bytes_of);

}  // namespace shf
