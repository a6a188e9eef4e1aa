#include "stream/engine.h"

#include "core/error_codes.h"
#include "core/log.h"
#include "core/options.h"
#include "core/threads.h"
#include "index/shard_counts.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace shf {

namespace {

// The number of threads when the option leaves it open.
uint64_t machine_threads() {
    return std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, 4);
}

Options with_threads(Options options) {
    if (options.threads == 0) options.threads = machine_threads();
    return options;
}

}  // namespace

Engine::Engine(std::span<const char* const> urls, const Options& options)
    : shared_(urls, with_threads(options)),
      builder_(*shared_.pool, shared_.cancel, false,
               [this](BlockRef block) { gathered_ = std::move(block); }) {
    shared_.pool->on_wait = [this] {
        const Engine* caller = this;  // inside whose call it can be served
        while (caller->mix_) caller = caller->mix_;
        if (caller->batcher_) return caller->batcher_->wake();
        const std::lock_guard lock(shared_.mutex);
        shared_.consumer.notify_one();
    };
    if (BatchClient& client = *this; shared_.batched)
        batcher_ = std::make_unique<Batcher>(shared_, client);
    if (options.even != Even::none)
        shared_.plan.set_counts(
            count_samples(shared_.shards, shared_.options, shared_.filter, shared_.cancel));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (const uint32_t number : shared_.plan.own_lanes()) {
        if (shared_.plan.shards_of(number) == 0) continue;
        LaneClient& client = *this;
        lanes.push_back(std::make_unique<Lane>(shared_, client, number, options.epoch));
    }
    set_lanes(std::move(lanes), {});
    refuse_second_reading(options.epochs != 1 || options.epoch_samples != 0 || options.resample);
    warns_of_sharing_ = shared_.plan.shares_lanes();
    if (options.even == Even::none)
        set_epoch_samples(shared_.plan);
    else
        shared_.stats.set(SHF_STAT_EPOCH_SAMPLES, shared_.plan.even_samples(options.epoch));
}

// Counts down to the end of the last epoch where the option epoch_samples is set.
void Engine::set_epoch_samples(const Plan& plan) {
    const Options& options = shared_.options;
    const uint64_t quota = plan.quota(options.epoch_samples);
    if (options.epoch_samples != 0 && options.epochs != 0 &&
        __builtin_mul_overflow(quota, options.epochs, &remaining_))
        remaining_ = UINT64_MAX;
    shared_.stats.set(SHF_STAT_EPOCH_SAMPLES, quota);
}

// Standard input can be read once. A list that is longer than this was not written with it in mind.
void Engine::refuse_second_reading(bool again) const {
    constexpr uint64_t longest = 1000;
    uint64_t times = 0;
    for (uint64_t i = 0; i < shared_.shards.size() && i < longest; ++i)
        times += shared_.shards.at(i) == "-" ? 1 : 0;
    if (times > 1 || (times == 1 && again))
        throw Error(SHF_E_USAGE, "standard input would be read more than once",
                    "give \"-\" once, with epochs=1 and without epoch_samples and resample");
}

Engine::~Engine() {
    cancel();
    // While any thread runs, the batcher exists and batcher_ does not change: who waits for the
    // user's allocator wakes it.
    join_readers();
    if (batcher_) batcher_->join();
}

void Engine::join_readers() noexcept {
    for (const auto& part : parts_) part->join_readers();
    for (std::thread& reader : readers_) reader.join();
    readers_.clear();
}

void Engine::cancel() noexcept {
    shared_.cancel.request();
    for (const auto& part : parts_) part->cancel();
    {
        const std::lock_guard lock(shared_.mutex);
        shared_.consumer.notify_all();
        shared_.begin.notify_all();
        for (const auto& lane : lanes_) lane->cancel();
    }
    shared_.pool->interrupt();
    if (batcher_) batcher_->wake();
}

uint64_t Engine::stat(int32_t stat) const {
    uint64_t value = stat == SHF_STAT_MEMORY        ? shared_.pool->held()
                     : stat == SHF_STAT_MEMORY_PEAK ? shared_.pool->peak()
                                                    : shared_.stats.get(stat);
    if (stat != SHF_STAT_EPOCH_SAMPLES)
        for (const auto& part : parts_) value += part->stat(stat);
    return value;
}

// ---- The user's allocator -----------------------------------------------------------------------

// Of this stream, and of the parts of a mix.
template <typename Act>
void Engine::each_pool(Act act) const {
    act(*shared_.pool);
    for (const auto& part : parts_) part->each_pool(act);
}

bool Engine::wants_service() const {
    bool wants = false;
    each_pool([&](const Pool& pool) { wants = wants || pool.wants_service(); });
    return wants;
}

void Engine::serve() {
    each_pool([](Pool& pool) { pool.serve(); });
}

// ---- Readers ------------------------------------------------------------------------------------

void Engine::start_readers() {
    for (const auto& part : parts_) part->start_readers();
    if (mixture_ || !readers_.empty() || at_end()) return;
    // A lane's shards are read in turn, some of them at once; every lane has readers of its own, so
    // that no lane can keep another from its next sample.
    const uint64_t per_lane =
        (shared_.options.threads + lanes_.size() - 1) / std::max<size_t>(lanes_.size(), 1);
    // Where the first sample needs hardly anything but its lane, it does not wait for the others.
    if (const Lane& first = *lanes_[turns_.front().lane]; first.starts_near())
        shared_.first = &first;
    for (const auto& lane : lanes_)
        for (uint64_t i = 0; i < per_lane; ++i)
            start_thread(readers_, "readers", per_lane * lanes_.size(),
                         [this, &lane = *lane] { run_reader(shared_, lane); });
    start_recall();
}

void Engine::start_recall() {
    std::vector<std::shared_ptr<Recall>> recalls;
    for (const auto& lane : lanes_)
        if (lane->recall()) recalls.push_back(lane->recall());
    if (recalls.empty()) return;
    const size_t all = readers_.size() + 1;
    start_thread(readers_, "readers", all, [this, recalls = std::move(recalls)] {
        {
            std::unique_lock lock(shared_.mutex);
            shared_.begin.wait(lock, [&] { return !shared_.first || shared_.cancel.requested(); });
        }
        for (const auto& recall : recalls) recall->read();
    });
}

// With shared_.mutex held.
void Engine::begin_all() {
    shared_.first = nullptr;
    shared_.begin.notify_all();
}

void Engine::run_reader(Shared& shared, Lane& lane) noexcept {
    std::unique_lock lock(shared.mutex);
    shared.begin.wait(
        lock, [&] { return !shared.first || shared.first == &lane || shared.cancel.requested(); });
    while (!shared.cancel.requested() && !lane.all_given()) {
        std::shared_ptr<ShardRun> run;
        try {
            run = lane.next_run();
        } catch (const std::bad_alloc&) {
            shared.out_of_memory = true;
            shared.consumer.notify_one();
            return;
        } catch (const Error&) {
            return;  // the consumer comes to it as well, when it begins that epoch
        }
        if (!run) {
            lane.readers.wait(lock);
            continue;
        }
        if (shared.consumer_waits && lane.head() == run.get()) shared.consumer.notify_one();
        lock.unlock();
        run->read();
        lock.lock();
    }
}

// ---- Consumer -----------------------------------------------------------------------------------

bool Engine::wait(std::unique_lock<std::mutex>& lock, Lane& lane) {
    if (shared_.first && shared_.first != &lane) begin_all();
    if (!waiting_.at_all) return false;
    // A thread that makes batches waits as long as it takes; next_batch() has the deadline, and
    // runs the callbacks.
    const auto wants_service = [&] { return waiting_.serves && shared_.pool->wants_service(); };
    const auto start = Clock::now();
    const auto happened = [&] {
        return (lane.head() && lane.head()->has_event()) || shared_.cancel.requested() ||
               shared_.out_of_memory || wants_service() || lane.head() != shared_.wanted;
    };
    bool in_time = true;
    while (in_time && !(lane.head() && lane.head()->has_event()) && !shared_.cancel.requested()) {
        shared_.wanted = lane.head();  // NULL until a reader has taken the shard
        if (lane.head()) lane.head()->want();
        shared_.consumer_waits = true;
        if (!waiting_.until)
            shared_.consumer.wait(lock, happened);
        else
            in_time = shared_.consumer.wait_until(lock, *waiting_.until, happened);
        shared_.consumer_waits = false;
        if (shared_.out_of_memory) throw std::bad_alloc();
        if (wants_service()) {
            lock.unlock();
            shared_.pool->serve();
            lock.lock();
        }
    }
    shared_.wanted = nullptr;
    if (waiting_.serves)
        shared_.stats.add_alone(
            SHF_STAT_CONSUMER_WAIT_NS,
            static_cast<uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start)
                    .count()));
    shared_.cancel.check();
    if (!in_time)
        throw Error(SHF_E_TIMEOUT, "no sample within the time of the option timeout",
                    "call again to continue waiting");
    return true;
}

void Engine::fault(Fault fault, bool whole_shard) {
    if (fault.unverified > 0) shared_.stats.add(SHF_STAT_UNVERIFIED_SAMPLES, fault.unverified);
    if (shared_.options.on_error == OnError::raise || !skippable(fault.code))
        throw Error(std::move(fault));
    Stats& stats = shared_.stats;
    stats.add(whole_shard ? SHF_STAT_SKIPPED_SHARDS : SHF_STAT_SKIPPED_SAMPLES, 1);
    stats.add(SHF_STAT_SKIPS_BY_CLASS - fault.code, 1);
    const uint64_t samples = stats.get(SHF_STAT_SKIPPED_SAMPLES);
    const uint64_t shards = stats.get(SHF_STAT_SKIPPED_SHARDS);
    if (samples + shards > shared_.options.max_skips) {
        fault.cause =
            plural(samples, "sample") + " and " + plural(shards, "shard") +
            " were skipped, more than max_skips=" + std::to_string(shared_.options.max_skips) +
            "; the last one: " + name_of_code(fault.code) + ": " + fault.cause;
        fault.help = "mend the shards, or raise max_skips";
        fault.code = SHF_E_LIMIT;
        throw Error(std::move(fault));
    }
    warn((whole_shard ? "skipped the rest of a shard: " : "skipped a sample: ") +
         std::string(name_of_code(fault.code)) + ": " + fault.text());
}

void Engine::warn(const std::string& message) {
    const std::lock_guard lock(notes_mutex_);
    notes_.push_back(message);
}

void Engine::pass_on_notes() {
    std::vector<std::string> notes;
    {
        const std::lock_guard lock(notes_mutex_);
        notes.swap(notes_);
    }
    if (std::exchange(warns_of_sharing_, false)) warn_of_sharing();
    for (const std::string& note : notes) log(shared_.options, SHF_LOG_WARNING, note);
    for (const auto& part : parts_) part->pass_on_notes();
}

// Once for the program, which opens a stream for every epoch or rank.
void Engine::warn_of_sharing() const {
    static std::atomic<bool> said{false};
    if (!shared_.options.log || shared_.options.log_level < SHF_LOG_WARNING || said.exchange(true))
        return;
    const Plan& plan = shared_.plan;
    log(shared_.options, SHF_LOG_WARNING,
        "lanes=" + std::to_string(plan.lanes()) + " is not a multiple of the " +
            plural(plan.consumers(), "consumer") + ": every lane is read by " +
            std::to_string(plan.sharing().readers()) +
            " of them, which keep their own samples of it");
}

// epoch_samples takes as many passes as it needs.
bool Engine::endless() const {
    return shared_.options.epochs == 0 || shared_.options.epoch_samples != 0;
}

// Whether it comes after the last one.
bool Engine::is_over(uint64_t epoch) const {
    return !endless() && epoch - shared_.options.epoch >= shared_.options.epochs;
}

// The lane has left its epoch; when the others have as well, a shard must have been opened there: a
// mistyped path is no empty epoch, regardless of on_error.
void Engine::end_pass(const Lane& lane, uint64_t next) {
    opened_ = opened_ || lane.opened();
    if (!unopened_) unopened_ = lane.unopened();
    if (!turns_.empty() && turns_.front().epoch < next) return;
    const bool opened = std::exchange(opened_, false);
    std::optional<Fault> fault = std::exchange(unopened_, std::nullopt);
    if (opened || !fault) return;
    fault->cause += "; no shard of this pass could be opened";
    throw Error(std::move(*fault));
}

// A lane is at the end of its epoch: it begins the next one, or that was the last.
void Engine::end_epoch(size_t lane) {
    const uint64_t next = turns_.take(lane).epoch + 1;
    end_pass(*lanes_[lane], next);
    if (is_over(next)) return over_.push_back({next, 0, lane});
    lanes_[lane]->begin_epoch(next);
    turns_.add({next, 0, lane});
    // Every lane has been through a whole epoch without a sample: that would never end.
    if (endless() && turns_.front().epoch > fruitful_epoch_ + 1)
        throw Error(SHF_E_FORMAT, "no sample in a whole epoch",
                    "check the shards, and what fields, select_keys and slice leave of them");
}

Pull Engine::pull(Delivery& out) {
    if (mixture_) return pull_part(out);
    if (!at_end() && settle() == Pull::later) return Pull::later;
    size_t lane = 0;
    return pull_own(out, lane);
}

// The next sample that is for this consumer, and the lane that it came through.
Pull Engine::pull_own(Delivery& out, size_t& lane) {
    const bool shared = shared_.plan.shares_lanes();
    while (!at_end()) {
        lane = turns_.front().lane;
        const Pull pull = lanes_[lane]->pull(out);
        if (shared_.first) {  // only this thread changes it
            const std::lock_guard lock(shared_.mutex);
            begin_all();
        }
        if (pull == Pull::later) return pull;
        if (pull == Pull::epoch_end) {
            end_epoch(lane);
            continue;
        }
        fruitful_epoch_ = std::max(fruitful_epoch_, turns_.front().epoch);
        turns_.took();
        if (!shared || shared_.plan.owns(passed_++)) return pull;
        out = {};
    }
    return Pull::epoch_end;
}

// Before a place is noted from which samples of this consumer are counted: what is still to be
// dropped is counted in another way.
void Engine::settle_shared() {
    for (const auto& part : parts_) {
        part->waiting_ = waiting_;
        part->settle_shared();
    }
    if (shared_.plan.shares_lanes() && !at_end()) (void)settle();
}

// Of this stream, or of a part of a mix.
bool Engine::shares_lanes() const {
    return shared_.plan.shares_lanes() ||
           std::any_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->shares_lanes(); });
}

// Of a stream with one lane.
Pull Engine::pull_block(BlockRef& out, uint64_t most) {
    if (!at_end() && settle() == Pull::later) return Pull::later;
    while (!at_end()) {
        const Pull pull = lanes_[0]->pull_block(out, most);
        if (pull == Pull::sample) {
            fruitful_epoch_ = std::max(fruitful_epoch_, turns_.front().epoch);
            if (out) turns_.took(out->count);
        }
        if (pull != Pull::epoch_end) return pull;
        end_epoch(0);
    }
    return Pull::epoch_end;
}

void Engine::count(uint64_t samples, uint64_t bytes) {
    use_up(samples);
    shared_.stats.add_alone(SHF_STAT_SAMPLES, samples);
    shared_.stats.add_alone(SHF_STAT_BYTES, bytes);
}

void Engine::begin_call() {
    shared_.cancel.check();
    if (failure_) throw Error(*failure_);
    start_readers();
    serve();
    if (shared_.options.timeout != 0)
        deadline_ = Clock::now() + std::chrono::nanoseconds(shared_.options.timeout);
}

// Runs one call; every failure but a timeout stays.
template <typename Take>
auto Engine::guarded(Take take) {
    // Callbacks may run on this thread while this lives.
    struct InsideCall {
        explicit InsideCall(const Engine& engine) : engine(engine) {
            engine.each_pool([](Pool& pool) { pool.enter(); });
        }
        ~InsideCall() {
            engine.each_pool([](Pool& pool) { pool.leave(); });
        }
        InsideCall(const InsideCall&) = delete;
        InsideCall& operator=(const InsideCall&) = delete;
        const Engine& engine;
    } const inside(*this);
    try {
        begin_call();
        auto taken = take();
        if (!taken) leave_pipes();
        pass_on_notes();
        return taken;
    } catch (...) {
        Fault fault = describe_exception();
        pass_on_notes();
        if (fault.code != SHF_E_TIMEOUT && !failure_) failure_ = std::move(fault);
        throw;
    }
}

void Engine::check_mode(bool batches) const {
    if (batches && !batcher_)
        throw Error(SHF_E_USAGE, "this stream has no batches", "set the option batch");
    if (!batches && batcher_)
        throw Error(SHF_E_USAGE, "this stream delivers batches",
                    "leave out the option batch, or take batches");
}

// At the end, so that no process is left then.
void Engine::leave_pipes() noexcept {
    shared_.watch.reset();
    for (const auto& part : parts_) part->leave_pipes();
}

Sample* Engine::next() {
    check_mode(false);
    return guarded([this]() -> Sample* {
        Delivery delivery = std::move(pending_);
        waiting_ = {.until = deadline_};
        note_.reset();
        if (!delivery.block && pull(delivery) == Pull::epoch_end) return nullptr;
        Block* block = delivery.block.release();
        count(1, block->payload_of(delivery.index));
        return &block->samples[delivery.index];
    });
}

// Adds what comes next to the builder, waiting only for the first sample, until the builder has
// passed on a block by itself or holds what shall be one. False at the end.
bool Engine::gather(uint64_t most) {
    std::vector<LooseField> fields;
    while (!gathered_ && builder_.count() < most) {
        Delivery delivery = std::move(pending_);
        if (!delivery.block) {
            waiting_.at_all = builder_.count() == 0;
            try {
                if (pull(delivery) != Pull::sample) break;
            } catch (const Error& error) {
                if (builder_.count() == 0) throw;
                failure_ = error.fault();  // the samples before it go first
                break;
            }
        }
        const Block& block = *delivery.block;
        const uint32_t i = delivery.index;
        fields.clear();
        for (uint64_t row = block.first_field[i]; row < block.first_field[i + 1]; ++row)
            fields.push_back({block.buffers[block.buffer[row]].data() + block.start[row],
                              block.stop[row] - block.start[row],
                              &block.storages[block.buffer[row]]});
        const LooseSample sample{block.key_of(i), block.offset[i], block.origins[block.origin[i]],
                                 block.schemas[block.schema[i]], fields};
        if (!builder_.accepts(sample)) {
            pending_ = std::move(delivery);
            break;
        }
        builder_.add(sample);
    }
    return gathered_ || builder_.count() > 0;
}

BlockRef Engine::next_block(uint64_t most) {
    check_mode(false);
    if (most == 0) most = UINT64_MAX;
    return guarded([this, most]() -> BlockRef {
        BlockRef block;
        waiting_ = {.until = deadline_};
        settle_shared();
        note_call();
        // A state of shared lanes is merged with others, and gives no position by its own samples.
        const uint64_t bound = std::min(shares_lanes() ? 1 : most, remaining_);
        // One lane without shuffle: its readers' blocks are the sequence.
        if (gives_whole_blocks() && !pending_.block && pull_block(block, bound) == Pull::epoch_end)
            return nullptr;
        if (!block) {
            if (!gather(bound)) return nullptr;
            if (!gathered_) builder_.flush();
            block = std::move(gathered_);
            for (const StorageRef& storage : block->storages) storage.hand_out();
        }
        count(block->count, block->payload_bytes);
        note_block(*block);
        return block;
    });
}

// On a thread of the batcher.
SampleRun Engine::take_run() {
    SampleRun run;
    waiting_ = {.serves = false, .until = {}};
    settle_shared();
    if (gives_whole_blocks() || shares_lanes())
        run.before = std::make_shared<const Position>(position());
    if (gives_whole_blocks()) {
        if (pull_block(run.block, UINT64_MAX) == Pull::epoch_end) return {};
        if (run.block)
            run.count = static_cast<uint32_t>(std::min<uint64_t>(run.block->count, remaining_));
    }
    if (!run.block) {
        Delivery delivery;
        if (pull(delivery) == Pull::epoch_end) return {};
        run.block = std::move(delivery.block);
        run.first = delivery.index;
        run.count = 1;
    }
    use_up(run.count);
    return run;
}

BatchRef Engine::next_batch() {
    check_mode(true);
    return guarded([this]() -> BatchRef {
        BatchRef batch = batcher_->next(deadline_);
        if (!batch) return nullptr;
        shared_.stats.add(SHF_STAT_SAMPLES, batch->rows);
        shared_.stats.add(SHF_STAT_BYTES, batch->bytes());
        return batch;
    });
}

}  // namespace shf
