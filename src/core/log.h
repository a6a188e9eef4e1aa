// Messages for the program, through the callback that it set.
#pragma once

#include <cstdint>
#include <string>

namespace shf {

struct Options;

// Passes a message on when the program wants messages of this level. Only on the thread that is
// inside a call of the library.
void log(const Options& options, int32_t level, const std::string& message);

}  // namespace shf
