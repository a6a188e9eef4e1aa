// The threads that read the shards of lanes: each lane has its own, so that no lane can keep
// another from its next sample. A lane's shards are read in turn, some of them at once.
#pragma once

#include "stream/lane.h"

#include <span>
#include <thread>
#include <vector>

namespace shf {

class LaneThreads {
  public:
    // Starts as many as the option threads says, at least one for each lane. Both must outlive
    // them. Throws Error.
    void start(LaneContext& context, std::span<Lane* const> lanes);
    [[nodiscard]] bool started() const { return !threads_.empty(); }
    // After the stream was cancelled.
    void join() noexcept;

  private:
    void start_refills(LaneContext& context, std::span<Lane* const> lanes);

    std::vector<std::thread> threads_;
};

}  // namespace shf
