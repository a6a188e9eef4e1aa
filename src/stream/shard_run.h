// A ShardRun is one reading of one shard: the queue between the reader's thread and the consumer.
#pragma once

#include "index/shard_counts.h"
#include "index/shard_index.h"
#include "io/pipe_watch.h"
#include "io/sources.h"
#include "order/indexed_share.h"
#include "order/lane_state.h"
#include "order/plan.h"
#include "sample/sample_reader.h"
#include "stream/context.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace shf {

class Lane;
class ShardRun;

// What all threads of one stream of shards share.
struct LaneContext : StreamContext {
    LaneContext(std::span<const char* const> urls, const Options& options)
        : LaneContext(urls, options, options.batch > 0) {}
    // `decodes`: samples become rows, as soon as they are taken if there is no shuffle buffer.
    LaneContext(std::span<const char* const> urls, const Options& options, bool decodes);

    uint32_t part = 0;  // number among the streams of a mix; as options
    const SampleFilter filter;
    const FieldTest deferred;  // fields that are read straight into batches; may be empty
    const Sources sources;
    ShardList shards;
    Plan plan;
    // Until the end of the stream one process watches for all its pipes.
    std::optional<PipeWatch::Stay> watch{std::in_place};
    const bool single_samples;   // blocks of one sample, for the shuffle buffers
    const uint64_t run_ahead;    // bytes that all readers together may hold without being asked for
    const uint64_t queue_limit;  // bytes that one reader may have waiting in its queue
    // Bytes that the readers of slow shards whose turn has not come may hold together.
    // Without that much a second thread would wait for the first: a lane's shards are delivered in
    // turn.
    const uint64_t slow_ahead_limit;
    Wait wait;  // of the thread that pulls samples, which sets it

    std::mutex mutex;  // guards all below, and the queues of all runs
    std::condition_variable consumer;
    const ShardRun* wanted = nullptr;  // the run that the consumer waits for
    bool consumer_waits = false;
    const Lane* only_lane = nullptr;  // while it is set, only the readers of this lane begin
    std::condition_variable begin;
    uint64_t slow_ahead_bytes = 0;           // held by them now
    bool large_pieces = false;               // some reader asked for more than run_ahead at once
    bool out_of_memory = false;              // a reader could not even take a shard
    std::vector<ShardRun*> waiting;          // runs whose readers wait in admit()
    std::atomic<size_t> waiting_count{0};    // its size, to be looked at without the lock
    std::atomic<uint64_t> shuffle_bytes{0};  // held by shuffle buffers

    // Payload bytes that readers hold, but for the deep ones: what shuffle buffers and batches in
    // the making hold is not running ahead. With the lock held.
    [[nodiscard]] uint64_t ahead() const {
        const uint64_t kept = shuffle_bytes.load(std::memory_order_relaxed) +
                              batch_bytes.load(std::memory_order_relaxed) + slow_ahead_bytes;
        const uint64_t held = pool->held();
        return held > kept ? held - kept : 0;
    }
    // How many threads decompress one shard of a lane: those of its readers that have no shard.
    [[nodiscard]] uint64_t decoders(uint32_t lane) const;
    [[nodiscard]] Error shuffle_too_large() const;
    // The epochs have no last one: epoch_samples takes as many passes as it needs.
    [[nodiscard]] bool endless() const { return options.epochs == 0 || options.epoch_samples != 0; }
    // Whether the epoch comes after the last one.
    [[nodiscard]] bool is_over(uint64_t epoch) const {
        return !endless() && epoch - options.epoch >= options.epochs;
    }
    // For the option by_index, once the plan has counts.
    [[nodiscard]] Dealing dealing() const { return {options, plan.samples()}; }
    // For the options even and by_index: see count_samples().
    [[nodiscard]] std::vector<uint32_t> sample_counts() const {
        return count_samples(shards, options, filter);
    }
    // Of samples that come through `lane`; open_shard() says the rest.
    [[nodiscard]] std::shared_ptr<Origin> origin(uint64_t epoch, uint32_t lane) const {
        return std::make_shared<Origin>(
            Origin{.url = {}, .shard = 0, .epoch = epoch, .lane = lane, .part = part});
    }
    // The thread that pulls samples waits, as `wait` says, until has_event() holds. mutex is held
    // through `lock`. want() is called before each sleep; changed() ends one, too. False: the
    // caller does not want to wait. Throws Error: TIMEOUT, CANCELLED; std::bad_alloc.
    template <typename HasEvent, typename Want, typename Changed>
    bool wait_for_event(std::unique_lock<std::mutex>& lock, const HasEvent& has_event,
                        const Want& want, const Changed& changed);
    // Wakes readers that may continue, after memory was handed out.
    void wake_readers();
    // All readers begin. With the lock held.
    void begin_all();
};

template <typename HasEvent, typename Want, typename Changed>
bool LaneContext::wait_for_event(std::unique_lock<std::mutex>& lock, const HasEvent& has_event,
                                 const Want& want, const Changed& changed) {
    if (!wait.at_all) return false;
    // A thread that makes batches waits as long as it takes; the consumer has the deadline, and
    // runs the callbacks.
    const auto wants_service = [&] { return wait.serves && pool->wants_service(); };
    const auto happened = [&] {
        return has_event() || cancel.requested() || out_of_memory || wants_service() || changed();
    };
    const auto start = Clock::now();
    bool in_time = true;
    while (in_time && !has_event() && !cancel.requested()) {
        want();
        consumer_waits = true;
        if (!wait.until)
            consumer.wait(lock, happened);
        else
            in_time = consumer.wait_until(lock, *wait.until, happened);
        consumer_waits = false;
        if (out_of_memory) throw std::bad_alloc();
        if (wants_service()) {
            lock.unlock();
            pool->serve();
            lock.lock();
        }
    }
    if (wait.serves) count_wait(start);
    wanted = nullptr;
    cancel.check();
    if (!in_time)
        throw Error(SHF_E_TIMEOUT, "no sample within the time of the option timeout",
                    "call again to continue waiting");
    return true;
}

// What is thrown when samples are missing that were there when a state was saved.
Error fewer_samples();

// Opens the nth shard of the lane of `origin` in its epoch, and says in `origin` and `url`
// which one it is. Throws Error; CHANGED when it is another version than `resume` (may be NULL)
// knows.
std::unique_ptr<Source> open_shard(LaneContext& context, uint64_t nth, const Resume* resume,
                                   const Cancel& cancel, Origin& origin, std::string& url);

// Through which lane a sample of a block came.
inline LanePlace place_of(const Block& block, uint32_t sample) {
    const Origin& origin = *block.origins[block.origin[sample]];
    return {origin.part, origin.lane};
}

class ShardRun final : private MemoryGate, private SampleSink {
  public:
    struct Event {
        BlockRef block;              // some samples, or
        std::optional<Fault> fault;  // a bad sample, or why the shard ended early
        bool end = false;            // the shard is over; the last event
        bool opened = true;          // with it: as SampleReader has it
        bool counted = true;         // the bad sample has a number, as SampleStart counts
        std::string warning;         // for the log
    };

    // The nth shard (0, 1, ...) of a lane in an epoch, read from its start or as `resume` says.
    ShardRun(LaneContext& context, uint64_t epoch, uint32_t lane, uint64_t nth, bool last_of_epoch,
             std::shared_ptr<const Resume> resume);

    // Reads the whole shard. On a reader's thread; never throws.
    void read() noexcept;

    // For the consumer, with context.mutex held.
    [[nodiscard]] bool has_event() const { return !events_.empty() || ended_; }
    // All events that are there, in order; at least one when has_event().
    void take_events(std::deque<Event>& out);
    // The consumer waits for this run: its reader gets what it needs.
    void want();
    [[nodiscard]] bool last_of_epoch() const { return last_of_epoch_; }
    [[nodiscard]] uint64_t epoch() const { return origin_->epoch; }
    [[nodiscard]] uint64_t nth() const { return nth_; }
    // As Origin has it, once has_event(): of the shard that was opened; 0 when none was.
    [[nodiscard]] uint32_t version() const { return origin_->version; }

    // With context.mutex held.
    void become_head();  // of its lane
    void wake_reader_if_admitted();
    // Its reader stops where it is.
    void cancel();
    // Cancelled, and nobody waits for an event of it any more. What is in the queue goes into
    // `out`, to be freed without the lock.
    void abandon(std::deque<Event>& out);

  private:
    void admit(size_t bytes) override;
    void about_to_wait() override;
    void is_slow() override;
    void deliver(BlockRef block) override;
    void bad_sample(Fault fault, bool wanted) override;
    void found(const GroupedSample& sample) override;
    void check_count(const std::string& url, Source& source, uint64_t found) const;
    [[nodiscard]] std::string many_fields(const Block& block) const;
    void save_index(const std::string& url, Source& source, uint64_t end,
                    const std::optional<DecodePoints>& points);
    void find_points(const std::string& url, Source& source, SampleRequest& request) const;
    void read_shard();
    void wait_for_descriptor(const Error& error);
    [[nodiscard]] std::shared_ptr<Source> open_again(const std::string& url,
                                                     const Source& source) const;
    void warn_of_rereading();
    [[nodiscard]] bool admitted() const;
    void push(Event event);
    void wake_consumer();

    LaneContext& context_;
    const uint64_t nth_;
    const bool last_of_epoch_;
    const std::shared_ptr<const Resume> resume_;
    // The reader's thread completes it before the first event.
    const std::shared_ptr<Origin> origin_;
    Cancel cancel_;                    // of this run, also when the stream is cancelled
    SampleReader* samples_ = nullptr;  // while it reads
    bool indexed_;                     // every sample so far is in rows_
    std::unique_ptr<IndexRows> rows_;
    std::string warning_;
    const Schema* schema_ = nullptr;  // of the latest sample
    std::deque<Event> events_;
    bool is_head_ = false;     // its turn has come, or is next in its lane
    bool slow_ahead_ = false;  // slow to decompress and not first
    bool opened_ = false;
    bool pushed_ = false;  // anything; the reader's
    bool ended_ = false;
    std::optional<Fault> end_fault_;
    uint64_t queued_bytes_ = 0;
    std::chrono::steady_clock::time_point stuck_since_{};  // without a descriptor; none: it is not
    uint64_t changes_ = 0;                                 // of OpenShards, then
    int attempts_alone_ = 0;  // to open the shard without a descriptor when no other was open
    bool asleep_ = false;     // the reader waits in admit() ...
    size_t asked_ = 0;        // ... for this many bytes
    bool any_event_ = false;  // the consumer was woken for the first one
    std::condition_variable reader_;
};

}  // namespace shf
