// What samples are sorted by, as bytes whose order is the wanted one.
#pragma once

#include "cli/sample_view.h"

#include <string>
#include <string_view>

namespace cli {

enum class SortType { bytes, integer, number, natural };

// "bytes", "int", "float" or "natural". Throws Failure(wrong_command_line).
SortType sort_type_of(const std::string& word);

// Bytes that memcmp orders as `text` is ordered: by its bytes; as a whole number in decimal, of
// any length; as a floating-point number, NaN last; or naturally, where runs of digits in it are
// compared as numbers. Blanks around numbers are ignored. Throws Failure without the name of the
// sample when `text` is no such number.
std::string sort_key(std::string_view text, SortType type);

}  // namespace cli
