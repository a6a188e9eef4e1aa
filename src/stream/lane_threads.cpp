#include "stream/lane_threads.h"

#include "core/threads.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace shf {

namespace {

void run_reader(LaneContext& context, Lane& lane) noexcept {
    std::unique_lock lock(context.mutex);
    context.begin.wait(lock, [&] {
        return !context.only_lane || context.only_lane == &lane || context.cancel.requested();
    });
    while (!context.cancel.requested() && !lane.all_given()) {
        std::shared_ptr<ShardRun> run;
        try {
            run = lane.next_run();
        } catch (const std::bad_alloc&) {
            context.out_of_memory = true;
            context.consumer.notify_one();
            return;
        } catch (...) {
            return;  // the consumer comes to it as well, when it begins that epoch
        }
        if (!run) {
            lane.readers.wait(lock);
            continue;
        }
        if (context.consumer_waits && lane.head() == run.get()) context.consumer.notify_one();
        lock.unlock();
        run->read();
        lock.lock();
    }
}

}  // namespace

void LaneThreads::start(LaneContext& context, std::span<Lane* const> lanes) {
    const uint64_t per_lane =
        (context.options.threads + lanes.size() - 1) / std::max<size_t>(lanes.size(), 1);
    for (Lane* lane : lanes)
        for (uint64_t i = 0; i < per_lane; ++i)
            start_thread(threads_, "readers", per_lane * lanes.size(),
                         [&context, lane] { run_reader(context, *lane); });
    start_refills(context, lanes);
}

void LaneThreads::start_refills(LaneContext& context, std::span<Lane* const> lanes) {
    std::vector<std::shared_ptr<IndexedRefill>> refills;
    for (const Lane* lane : lanes)
        if (lane->indexed_refill()) refills.push_back(lane->indexed_refill());
    if (refills.empty()) return;
    const size_t all = threads_.size() + 1;
    start_thread(threads_, "readers", all, [&context, refills = std::move(refills)] {
        {
            std::unique_lock lock(context.mutex);
            context.begin.wait(lock,
                               [&] { return !context.only_lane || context.cancel.requested(); });
        }
        for (const auto& refill : refills) refill->read();
    });
}

void LaneThreads::join() noexcept {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

}  // namespace shf
