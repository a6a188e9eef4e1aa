#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace shf {

// Starts one more of `wanted` threads for `what` ("readers"), which runs without signals of the
// program. When the system has no room for it, those before it run on, until they are joined.
// Throws Error: LIMIT, or NOMEM where there is no memory for it.
void start_thread(std::vector<std::thread>& threads, std::string_view what, uint64_t wanted,
                  std::function<void()> run);

}  // namespace shf
