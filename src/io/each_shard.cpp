#include "io/each_shard.h"

#include "core/error.h"
#include "core/log.h"
#include "core/opening.h"
#include "core/options.h"
#include "core/threads.h"
#include "url/in_shard.h"
#include "url/scheme.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

namespace {

// A request for each waits for one round trip or two, which take no time of this machine.
constexpr uint64_t most_at_once = 16;
// Between two questions whether the call is to end, which it does within 100 ms.
constexpr std::chrono::milliseconds pause{20};

class Jobs {
  public:
    Jobs(const ShardList& shards, const std::function<void(uint64_t, const std::string&)>& job)
        : shards_(shards), job_(job), end_(shards.size()) {}

    // On several threads: jobs until there are no more.
    void work() noexcept {
        const LogQueue::Use logging(messages_);
        for (std::unique_lock lock(mutex_); next_ < end_;) {
            const uint64_t number = next_++;
            lock.unlock();
            std::optional<Fault> fault;
            try {
                const std::string url = shards_.at(number);
                in_shard(url, [&] { job_(number, url); });
            } catch (...) {
                fault = describe_exception();
            }
            lock.lock();
            if (!fault || number >= end_) continue;
            end_ = number;
            fault_ = std::move(fault);
        }
        const std::lock_guard lock(mutex_);
        ++ended_;
        changed_.notify_one();
    }

    // Until so many threads have ended, or for a moment. True: they have.
    bool wait(size_t threads) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, pause, [&] { return ended_ == threads; });
    }
    // What the jobs logged.
    void pass_on(const Options& options) { messages_.pass_on(options); }
    // No more are begun.
    void stop() {
        const std::lock_guard lock(mutex_);
        end_ = std::min(end_, next_);
    }
    void check() const {
        if (fault_) throw Error(*fault_);
    }

  private:
    const ShardList& shards_;
    const std::function<void(uint64_t, const std::string&)>& job_;
    LogQueue messages_;
    std::mutex mutex_;  // below
    std::condition_variable changed_;
    uint64_t next_ = 0, end_;
    size_t ended_ = 0;
    std::optional<Fault> fault_;  // of shard end_
};

}  // namespace

bool are_remote(const ShardList& shards) {
    const auto is_remote = [&](uint64_t number) {
        const std::string scheme = scheme_of(shards.at(number));
        return !scheme.empty() && scheme != "file" && scheme != "pipe" && scheme != "-";
    };
    // Lists of both kinds are rare.
    return shards.size() > 0 && (is_remote(0) || is_remote(shards.size() - 1));
}

void for_each_shard(const ShardList& shards, const Options& options, Cancel& cancel,
                    const std::function<void(uint64_t, const std::string&)>& job) {
    const uint64_t threads = std::min(most_at_once, shards.size());
    // Functions of the program are called on the thread that it knows.
    if (threads <= 1 || !are_remote(shards) || !options.sources.empty()) {
        for (uint64_t i = 0; i < shards.size(); ++i) {
            const std::string url = shards.at(i);
            in_shard(url, [&] { job(i, url); });
        }
        return;
    }
    Jobs jobs(shards, job);
    std::vector<std::thread> workers;
    const auto end = [&] {
        for (std::thread& worker : workers) worker.join();
    };
    try {
        for (uint64_t i = 0; i < threads; ++i)
            start_thread(workers, "connections", threads, [&jobs] { jobs.work(); });
        while (!jobs.wait(workers.size())) {
            jobs.pass_on(options);
            Opening::check();
        }
    } catch (...) {
        jobs.stop();
        cancel.request();
        end();
        throw;
    }
    end();
    jobs.pass_on(options);
    jobs.check();
}

}  // namespace shf
