#include "write/publisher.h"

#include "core/error.h"
#include "core/options.h"
#include "core/threads.h"
#include "index/index_store.h"
#include "index/tar_indexer.h"
#include "io/file.h"
#include "url/redact.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace shf {

struct Publisher::State {
    State(const Options& options_, const Cancel& cancel_) : options(options_), cancel(cancel_) {}

    const Options& options;
    const Cancel& cancel;
    const pid_t owner = ::getpid();

    std::mutex mutex;
    std::condition_variable changed;
    // Under the mutex.
    std::deque<WholeShard> waiting;  // the first is being published
    std::vector<PublishedShard> published;
    std::optional<Fault> failure;
    bool stop = false;

    std::vector<std::thread> threads;

    void run() {
        for (;;) {
            WholeShard* next = nullptr;
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return stop || (!waiting.empty() && !failure); });
                if (stop) return;
                next = &waiting.front();
            }
            std::optional<Fault> fault;
            try {
                publish(*next);
            } catch (...) {
                fault = describe_exception();
                fault->shard = redact(next->shard.url);
            }
            const std::lock_guard lock(mutex);
            if (fault)
                failure = fault;
            else
                published.push_back(std::move(next->shard));
            waiting.pop_front();
            changed.notify_all();
        }
    }

    void publish(WholeShard& whole) const {
        if (whole.rows) {
            // First the index, so that whoever sees the shard finds it.
            whole.sink->sync();
            const auto source = file_source(whole.sink->path(), cancel);
            const uint64_t leniency = leniency_of(options) & (whole.shard.samples == 0 ? 24U : 8U);
            whole.shard.index =
                store_index(whole.shard.url,
                            *whole.rows->finish(identify(*source), whole.end, leniency), options);
        }
        try {
            whole.sink->publish();
        } catch (...) {
            if (!whole.shard.index.empty()) ::unlink(whole.shard.index.c_str());
            throw;
        }
    }

    // Waits until at most `most` shards are left. Throws Error.
    void wait_for(size_t most) {
        std::unique_lock lock(mutex);
        while (!failure && waiting.size() > most)
            if (changed.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::timeout) {
                lock.unlock();
                cancel.check();
                lock.lock();
            }
        if (failure) throw Error(*failure);
    }
};

Publisher::Publisher(const Options& options, const Cancel& cancel)
    : state_(std::make_unique<State>(options, cancel)) {}

Publisher::~Publisher() {
    State& s = *state_;
    if (::getpid() != s.owner) {  // the thread is the parent's
        for (std::thread& thread : s.threads) thread.detach();
        return;
    }
    {
        const std::lock_guard lock(s.mutex);
        s.stop = true;
    }
    s.changed.notify_all();
    for (std::thread& thread : s.threads) thread.join();
}

void Publisher::add(WholeShard whole) {
    State& s = *state_;
    s.wait_for(1);
    {
        const std::lock_guard lock(s.mutex);
        s.waiting.push_back(std::move(whole));
    }
    if (s.threads.empty())
        start_thread(s.threads, "publishers", 1, [&s] { s.run(); });
    else
        s.changed.notify_all();
}

void Publisher::wait() {
    state_->wait_for(0);
}

std::vector<PublishedShard> Publisher::take() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->published, {});
}

}  // namespace shf
