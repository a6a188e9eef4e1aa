#include "core/parallel.h"

#include "core/error.h"
#include "core/threads.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace shf {

namespace {

// Reading this much takes clearly longer than starting a thread and waiting for its end.
constexpr uint64_t least_per_thread = 1024 * 1024;

}  // namespace

void run_jobs(size_t count, size_t run, uint64_t threads, uint64_t bytes,
              const std::function<void(size_t)>& job, const std::function<size_t(size_t)>& rank) {
    std::atomic<size_t> next{0};
    std::mutex mutex;  // guards the two below; only taken when something is wrong
    size_t first_bad = 0;
    std::optional<Fault> fault;
    const auto work = [&]() noexcept {
        for (;;) {
            const size_t from = next.fetch_add(run, std::memory_order_relaxed);
            if (from >= count) return;
            for (size_t i = from; i < std::min(from + run, count); ++i) {
                try {
                    job(i);
                } catch (...) {
                    Fault what = describe_exception();
                    const std::lock_guard lock(mutex);
                    if (fault && first_bad < rank(i)) continue;
                    first_bad = rank(i);
                    fault = std::move(what);
                }
            }
        }
    };
    if (threads == 0) threads = std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, 4);
    threads = std::min({threads, bytes / least_per_thread + 1, uint64_t{count / run + 1}});
    std::vector<std::thread> others;
    if (threads > 1) {
        try {
            const SignalsBlocked blocked;
            others.reserve(static_cast<size_t>(threads));
            for (uint64_t i = 1; i < threads; ++i) others.emplace_back(work);
        } catch (const std::exception&) {  // then with fewer
        }
    }
    work();
    for (std::thread& other : others) other.join();
    if (fault) throw Error(std::move(*fault));
}

}  // namespace shf
