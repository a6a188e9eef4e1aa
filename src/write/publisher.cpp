#include "write/publisher.h"

#include "core/error.h"
#include "core/options.h"
#include "core/threads.h"
#include "index/index_store.h"
#include "index/tar_indexer.h"
#include "io/file.h"
#include "io/sources.h"
#include "url/redact.h"
#include "url/scheme.h"
#include "write/prepared_shard.h"

#include <unistd.h>

#include <algorithm>
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
    SourceUse use;  // nobody asks for it
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
            publish_next(*next);
        }
    }

    void publish(WholeShard& whole) {
        if (options.prepare) return prepare(whole);
        whole.sink->publish();
        whole.published = true;
        for (const ForeignIndex& index : whole.indexes.files)
            publish_index(index, {options, cancel, use});
        // Behind the shard, whose name is ours from then on: an index that is there is of none.
        if (!whole.rows) return;
        const std::string path = whole.sink->path();
        const auto source = path.empty() ? Sources(options, cancel, use).open(whole.target)
                                         : file_source(path, cancel);
        const auto index = index_of(whole, identify(*source));
        if (path.empty() && options.index_dir.empty()) {
            whole.shard.index = put_beside(whole.target, *index);
            return;
        }
        const std::string stored = store_index(whole.target, *index, options);
        // Beside a shard it is named as the shard is, which may be relative.
        const bool is_beside = is_local_path(whole.shard.url) && stored.starts_with(whole.target);
        whole.shard.index =
            is_beside ? whole.shard.url + stored.substr(whole.target.size()) : stored;
    }

    [[nodiscard]] std::shared_ptr<const ShardIndex> index_of(const WholeShard& whole,
                                                             const ShardIdentity& identity) const {
        const uint64_t leniency =
            options.duplicate_keys == DuplicateKeys::accept ? leniency_of(options) : uint64_t{0};
        return whole.rows->finish(identity, whole.end, leniency,
                                  whole.points ? &*whole.points : nullptr);
    }

    // The shard and its index wait for whoever gets the token.
    void prepare(WholeShard& whole) {
        PreparedShard made{.digest = whole.shard.digest, .file = {}, .index = {}};
        std::shared_ptr<const ShardIndex> index;
        made.file = whole.sink->prepare();
        made.file.url = whole.target;
        try {
            if (whole.rows) {
                const std::string path = whole.sink->path();
                index = index_of(
                    whole, path.empty() ? whole.identity : identify(*file_source(path, cancel)));
                const std::string url = whole.target + ".sfidx";
                Options overwriting = options;
                overwriting.overwrite = true;
                const auto sink = open_sink(url, {overwriting, cancel, use});
                sink->write(index->file());
                made.index = sink->prepare();
                made.index->url = url;
                whole.shard.index = whole.shard.url + ".sfidx";
            }
            whole.shard.token = token_of(made);
        } catch (...) {
            discard(made);
            throw;
        }
        whole.published = true;
    }

    // Of which nobody gets a token. A cancel is no reason to leave it.
    void discard(const PreparedShard& made) noexcept {
        try {
            Options once = options;
            once.retries = std::min<uint64_t>(once.retries, 1);
            const Cancel never;
            discard_shard(made, {once, never, use});
        } catch (...) {  // discard_left() finds it
        }
    }

    // In the store of the shard. Returns its URL.
    std::string put_beside(const std::string& shard, const ShardIndex& index) {
        Options overwriting = options;
        overwriting.overwrite = true;
        const std::string url = shard + ".sfidx";
        const auto sink = open_sink(url, {overwriting, cancel, use});
        sink->write(index.file());
        sink->publish();
        return url;
    }

    // Never throws.
    void publish_next(WholeShard& next) noexcept {
        std::optional<Fault> fault;
        try {
            publish(next);
        } catch (...) {
            fault = describe_exception();
        }
        try {
            if (fault) fault->shard = redact(next.shard.url);
            const std::lock_guard lock(mutex);
            if (next.published) published.push_back(std::move(next.shard));
        } catch (...) {
            fault = describe_exception();
        }
        const std::lock_guard lock(mutex);
        if (fault) failure = std::move(fault);
        waiting.pop_front();
        changed.notify_all();
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

std::vector<PublishedShard> Publisher::take() noexcept {
    const std::lock_guard lock(state_->mutex);
    std::vector<PublishedShard> taken;
    taken.swap(state_->published);
    return taken;
}

}  // namespace shf
