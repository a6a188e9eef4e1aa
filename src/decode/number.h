// Numbers written as text: class labels, ids, scores.
#pragma once

#include "decode/decoder.h"

#include <memory>

namespace shf {

// Decimal digits with an optional sign, blanks around them: int64.
std::unique_ptr<Decoder> integer_decoder();
// Decimal numbers, "inf" and "nan": float64, the nearest one.
std::unique_ptr<Decoder> real_decoder();

}  // namespace shf
