// One job for each of many items, by a few threads that live as long as the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace shf {

// Calls job(i) for every i below `count`, on this thread and up to `threads` - 1 others (0: the
// number that the machine has, at most 4), in runs of neighbours. `bytes` is what there is to do in
// all: few bytes are not worth a thread. All jobs are run; throws what the one with the smallest
// rank(i) threw.
void run_jobs(size_t count, uint64_t threads, uint64_t bytes,
              const std::function<void(size_t)>& job, const std::function<size_t(size_t)>& rank);

}  // namespace shf
