// The classes of errors, which the public header numbers.
#pragma once

#include <cstdint>

namespace shf {

// "FORMAT", and what that means. Static text; never NULL.
const char* name_of_code(int32_t code) noexcept;
const char* text_of_code(int32_t code) noexcept;

}  // namespace shf
