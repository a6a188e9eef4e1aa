// One job for each of many items, by a few threads that live as long as the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace shf {

// Calls job(i) for every i below `count`, on this thread and up to `threads` - 1 others (0: the
// number that the machine has, at most 4), `run` neighbours at a time. `bytes` is what there is to
// do in all: few bytes are not worth a thread. All jobs are run; throws what the one with the
// smallest rank(i) threw.
void run_jobs(size_t count, size_t run, uint64_t threads, uint64_t bytes,
              const std::function<void(size_t)>& job, const std::function<size_t(size_t)>& rank);
// Neighbours share pages, and threads meet less often.
constexpr size_t usual_run = 8;

}  // namespace shf
