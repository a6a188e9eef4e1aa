// The array of one row of a batch, for people to read.
#pragma once

#include <shardfeed.h>

#include <string>

namespace cli {

struct ArrayText {
    // Of the first row of a column of numbers.
    explicit ArrayText(const shf_array& array);

    std::string dtype;       // "float32"
    std::string shape;       // "(3, 4)"
    std::string json_shape;  // "[3,4]"
    std::string values;      // the first eight
};

}  // namespace cli
