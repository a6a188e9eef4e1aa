#include "stream/batcher.h"

#include "batch/mixed_rows.h"
#include "core/error.h"
#include "core/options.h"
#include "core/threads.h"

#include <algorithm>
#include <utility>

namespace shf {

namespace {

// Decoding so much, about, is one piece of work for a thread.
constexpr uint64_t piece = 256 * 1024;
// Samples that are decoded together to be packed.
constexpr uint64_t most_documents = 16384;

uint64_t thread_count(const Options& options) {
    if (options.decode_threads != 0) return options.decode_threads;
    return std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, 64);
}

}  // namespace

Batcher::Batcher(SequenceTree& samples)
    : samples_(samples),
      context_(samples.context()),
      plan_(context_.options),
      threads_wanted_(thread_count(context_.options)),
      most_makings_(threads_wanted_ + 2),
      taken_(windows()) {
    check_packing();
    check_counting();
}

void Batcher::join() noexcept {
    wake();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void Batcher::wake() {
    const std::lock_guard lock(mutex_);
    workers_.notify_all();
    consumer_.notify_all();
}

void Batcher::start() {
    next_start_ = {.before = std::make_shared<const Position>(samples_.top().position()),
                   .lanes = {}};
    if (reorders()) {
        taken_.stand_at(next_start_.before);
        anchored_ = 0;
    }
    for (uint64_t i = 0; i < threads_wanted_; ++i)
        start_thread(threads_, "decode threads", threads_wanted_, [this] { run(); });
}

// ---- Threads ------------------------------------------------------------------------------------

void Batcher::run() noexcept {
    DecodeScratch scratch;
    std::unique_lock lock(mutex_);
    while (!context_.cancel.requested()) {
        if (!tasks_.empty()) {
            Task task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            do_task(std::move(task), scratch);
            lock.lock();
        } else if (!taking_ && may_take()) {
            taking_ = true;
            lock.unlock();
            std::optional<Fault> fault;
            try {
                if (buckets())
                    take_into_buckets(scratch);
                else
                    windows() ? take_window(scratch) : take_rows(scratch);
            } catch (...) {
                fault = describe_exception();
                abandon();
            }
            lock.lock();
            taking_ = false;
            if (fault) end(std::move(fault));
            if (ended_) close_unfinished();
            // This thread takes the first task; only a second one is for another thread.
            if (!tasks_.empty()) workers_.notify_one();
        } else {
            workers_.wait(lock);
        }
    }
}

void Batcher::do_task(Task task, DecodeScratch& scratch) {
    std::vector<PendingBatch::Failure> failures;
    bool out_of_memory = false;
    std::optional<Fault> fatal;  // of no row
    if (task.tokenizes && !context_.cancel.requested()) {
        try {
            make_tokens(*task.making, failures);
        } catch (...) {
            fatal = describe_exception();
        }
    }
    for (const DecodeWork& work : task.work) {
        if (context_.cancel.requested()) break;
        try {
            task.making->builder.decode(work, scratch);
        } catch (...) {
            Fault fault = describe_exception();
            try {
                failures.push_back({work.row, work.column, std::move(fault)});
            } catch (...) {
                out_of_memory = true;
            }
        }
    }
    task.blocks.clear();  // their memory is free before anybody waits for it
    samples_.wake_readers();
    const std::lock_guard lock(mutex_);
    PendingBatch& making = *task.making;
    try {
        for (auto& failure : failures) making.failures.push_back(std::move(failure));
    } catch (...) {
        out_of_memory = true;
    }
    if (out_of_memory)
        fatal = Fault{.code = SHF_E_NOMEM, .shard = {}, .member = {}, .cause = {}, .help = {}};
    if (fatal) {
        making.broken_off = true;
        ended_ = true;
        end_fault_ = std::move(fatal);
        if (!taking_) close_unfinished();
    }
    if (--making.work == 0 && making.closed && makings_.front().get() == &making)
        consumer_.notify_one();
}

// The samples that come next, waiting as long as it takes; none at the end.
SampleRun Batcher::take_run() {
    SampleSequence& sequence = samples_.top();
    const Wait wait{.serves = false, .until = {}};
    SampleRun run;
    samples_.drop_delivered_shared(wait);
    if (sequence.gives_whole_blocks() || samples_.shares_lanes())
        run.before = std::make_shared<const Position>(sequence.position());
    if (sequence.pull_block(run.block, UINT64_MAX, wait) == Pull::epoch_end) return {};
    if (run.block) {
        run.count =
            static_cast<uint32_t>(std::min<uint64_t>(run.block->count, sequence.remaining()));
    } else {
        Delivery delivery;
        if (sequence.pull(delivery, wait) == Pull::epoch_end) return {};
        run.block = std::move(delivery.block);
        run.first = delivery.index;
        run.count = 1;
    }
    run.begin = run.first;
    sequence.use_up(run.count);
    return run;
}

// A thread may take samples when there is a batch to put them in, or room to start one.
bool Batcher::may_take() const {
    if (ended_) return false;
    if (open_) return true;
    if (makings_.empty()) return true;
    uint64_t bytes = usual_bytes_;
    for (const auto& making : makings_) bytes += making->bytes;
    return makings_.size() < most_makings_ && bytes <= context_.options.memory / 2;
}

void Batcher::open_making() {
    uint64_t capacity = 0;
    Start start;
    {
        // After a row that failed one batch has fewer rows, so that the later ones fit again.
        const std::lock_guard lock(mutex_);
        const bool packs = context_.options.pack > 0;
        if (makes_whole_batches()) phase_ = 0;
        capacity = packs ? most_documents : context_.options.batch - phase_;
        if (windows()) capacity = context_.options.pack_window;
        phase_ = 0;
        start = next_start_;
    }
    auto making = std::make_unique<PendingBatch>(plan_, capacity, [this](uint64_t bytes) {
        return context_.pool->acquire(static_cast<size_t>(bytes), context_.cancel);
    });
    making->start = std::move(start);
    if (context_.options.batch_elements > 0 && !run_.before)
        making->after_first = std::make_shared<const Position>(samples_.top().position());
    const std::lock_guard lock(mutex_);
    makings_.push_back(std::move(making));
    open_ = makings_.back().get();
}

// What a batch in the making holds is not running ahead, and bounded on its own.
void Batcher::account(PendingBatch& making) {
    const uint64_t bytes = making.builder.bytes() + making.kept_bytes;
    const uint64_t before = making.bytes.exchange(bytes, std::memory_order_relaxed);
    context_.batch_bytes.fetch_add(bytes - before, std::memory_order_relaxed);
    if (bytes > context_.options.memory)
        throw BatchTooLarge(SHF_E_LIMIT,
                            "a batch, with the samples that it is decoded from, takes more than "
                            "memory=" +
                                std::to_string(context_.options.memory),
                            "raise memory, or lower batch");
}

// In which the latest row was added, of the part of a mix that the sample is of.
std::optional<uint64_t>& Batcher::epoch_of_rows(const Origin& origin) {
    if (origin.part >= epochs_of_rows_.size()) epochs_of_rows_.resize(origin.part + 1);
    auto& epoch_of_row = epochs_of_rows_[origin.part];
    if (!epoch_of_row) epoch_of_row = origin.epoch;
    return epoch_of_row;
}

// Every sample of a whole epoch was skipped: that would never end.
void Batcher::check_epoch(const Origin& origin, const std::optional<uint64_t>& epoch_of_row) {
    if (origin.epoch > *epoch_of_row + 1)
        throw Error(SHF_E_FORMAT, "no sample of a whole epoch could be put into a batch",
                    "check the option decode");
}

Batcher::Took Batcher::add_row(PendingBatch& making, uint32_t sample) {
    const Block& block = *run_.block;
    const Origin& origin = *block.origins[block.origin[sample]];
    auto& epoch_of_row = epoch_of_rows(origin);
    try {
        // Before the row is there, which must not lack it.
        making.before.resize(static_cast<size_t>(making.builder.rows()));
        making.before.push_back(static_cast<uint32_t>(making.lanes.size()));
        making.lanes.push_back(place_of(block, sample));
        if (measure_sample(plan_, block, sample, measured_)) {
            if (!making.builder.has_room(measured_)) {
                making.lanes.pop_back();
                return Took::no_room;
            }
            making.builder.add(block, sample, measured_);
            epoch_of_row = origin.epoch;
            return Took::row;
        }
        context_.stats.add(SHF_STAT_PASSED_OVER, 1);
    } catch (const BatchTooLarge&) {
        throw;  // no fault of the sample
    } catch (const Error& error) {
        // It is reported in its place among the rows.
        if (context_.options.on_error == OnError::raise || !skippable(error.code())) throw;
        const std::lock_guard lock(mutex_);
        making.failures.push_back(
            {making.builder.rows(), PendingBatch::Failure::never_added, error.fault()});
    }
    check_epoch(origin, epoch_of_row);
    return Took::none;
}

// Gives rows to the samples that come next, until there is work for others or a batch is full.
void Batcher::take_rows(DecodeScratch& scratch) {
    if (run_.count == 0) {
        try {
            run_ = take_run();
        } catch (...) {
            break_off(start_of_next_sample());
            throw;
        }
        if (run_.count == 0) {
            if (open_) close_making(start_of_next_sample());
            const std::lock_guard lock(mutex_);
            return end(std::nullopt);
        }
    }
    if (!open_) open_making();
    PendingBatch& making = *open_;
    uint64_t bytes = 0, skipped = 0;
    std::vector<DecodeWork> work;
    std::optional<Fault> fault;
    Start bad;  // with a fault: where its sample starts
    bool no_room = false;
    while (run_.count > 0 && !making.builder.full() && bytes < piece && !fault) {
        const uint32_t sample = run_.first++;
        --run_.count;
        const auto taken = static_cast<std::ptrdiff_t>(making.lanes.size());
        try {
            const Took took = add_row(making, sample);
            if (took == Took::none) {
                ++skipped;
                continue;
            }
            if (took == Took::no_room) {  // it begins the next batch
                --run_.first;
                ++run_.count;
                no_room = true;
                break;
            }
        } catch (...) {
            fault = describe_exception();  // faults of earlier rows are reported first
            bad = making.start;
            bad.lanes.insert(bad.lanes.end(), making.lanes.begin(), making.lanes.begin() + taken);
            break;
        }
        if (making.builder.keeps_blocks()) {
            const uint64_t payload = run_.block->payload_of(sample);
            if (making.blocks.empty() || making.blocks.back().get() != run_.block.get()) {
                making.blocks.push_back(run_.block->share());
            }
            making.kept_bytes += payload;
        }
        for (DecodeWork& todo : making.builder.take_work()) {
            bytes += todo.type.bytes();
            if (todo.cheap)
                decode_at_once(making, todo, scratch);
            else
                work.push_back(todo);
        }
    }
    if (!work.empty()) hand_out_work(making, std::move(work), run_.block);
    if (fault) {
        break_off(std::move(bad));
        throw Error(std::move(*fault));
    }
    if (run_.count == 0) {
        run_.block.reset();
        samples_.wake_readers();
    }
    account(making);
    // These are reported before more are looked for.
    const bool enough = skipped > 0 && [&] {
        const std::lock_guard lock(mutex_);
        return making.failures.size() > context_.options.max_skips;
    }();
    if (no_room)
        close_making(start_of_refused_sample(), true);
    else if (making.builder.full() || enough)
        close_making(start_of_next_sample());
}

// While the bytes of the field are in the caches of this thread.
void Batcher::decode_at_once(PendingBatch& making, const DecodeWork& work, DecodeScratch& scratch) {
    try {
        making.builder.decode(work, scratch);
    } catch (...) {
        Fault fault = describe_exception();
        const std::lock_guard lock(mutex_);
        making.failures.push_back({work.row, work.column, std::move(fault)});
    }
}

void Batcher::hand_out_work(PendingBatch& making, std::vector<DecodeWork> work,
                            const BlockRef& block) {
    Task task{&making, std::move(work), {}};
    task.blocks.push_back(block->share());
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++making.work;
    workers_.notify_one();
}

Batcher::Start Batcher::start_of_next_sample() {
    if (run_.count > 0 && run_.before)
        return {.before = run_.before, .skip = run_.first - run_.begin, .lanes = {}};
    return {.before = std::make_shared<const Position>(samples_.top().position()), .lanes = {}};
}

// Of the sample in hand, which the batch in the making has no room for.
Batcher::Start Batcher::start_of_refused_sample() {
    if (run_.before) return start_of_next_sample();
    // The sequence is behind it.
    const PendingBatch& making = *open_;
    Start start = making.start;
    auto first = making.lanes.begin();
    if (making.after_first) {
        start = {.before = making.after_first, .lanes = {}};
        ++first;
    }
    start.lanes.insert(start.lanes.end(), first, making.lanes.end());
    return start;
}

// There will be no more rows. What had to wait for that is work now.
std::vector<Batcher::Task> Batcher::close_builder(PendingBatch& making) {
    const std::vector<DecodeWork> work = making.builder.close();
    std::vector<Task> tasks;
    uint64_t bytes = piece;
    for (const DecodeWork& todo : work) {
        if (bytes >= piece) {
            tasks.push_back({&making, {}, {}});
            bytes = 0;
        }
        bytes += todo.type.bytes() + 1;
        Task& task = tasks.back();
        task.work.push_back(todo);
        if (!making.blocks.empty() &&
            (task.blocks.empty() || task.blocks.back().get() != todo.block)) {
            task.blocks.push_back(const_cast<Block*>(todo.block)->share());
        }
    }
    making.blocks.clear();
    account(making);
    return tasks;
}

// The consumer may have it when the work is done. With the lock held.
void Batcher::publish(PendingBatch& making, std::vector<Task> tasks) {
    for (Task& task : tasks) {
        tasks_.push_back(std::move(task));
        ++making.work;
    }
    if (tokenizes() && making.builder.rows() > 0) {
        tasks_.push_back({&making, {}, {}, true});
        ++making.work;
    }
    making.closed = true;
    usual_bytes_ = making.bytes;
    workers_.notify_all();
    consumer_.notify_one();
}

// The batch that is made next starts at `next`.
void Batcher::close_making(Start next, bool no_room) {
    PendingBatch& making = *open_;
    making.whole = no_room || making.builder.full();
    std::vector<Task> tasks = close_builder(making);
    std::string columns = plan_.saved_columns();
    const std::lock_guard lock(mutex_);
    saved_columns_ = std::move(columns);
    next_start_ = std::move(next);
    publish(making, std::move(tasks));
    open_ = nullptr;
}

// A bad sample ends the batch in the making. Its rows may complete the batch before it.
void Batcher::break_off(Start next) noexcept {
    if (!open_) return;
    try {
        close_making(std::move(next));
    } catch (...) {
        abandon();
    }
}

// Nobody knows what was done of the batch in the making: its rows are lost, with the batch that the
// fault falls into.
void Batcher::abandon() noexcept {
    if (!open_) return;
    const std::lock_guard lock(mutex_);
    close_unfinished();
}

// A batch that nobody adds to any more must not keep the consumer waiting. With the lock held; no
// thread takes samples.
void Batcher::close_unfinished() noexcept {
    if (!open_) return;
    open_->closed = open_->broken_off = true;
    open_ = nullptr;
    consumer_.notify_one();
}

// No more samples. With the lock held.
void Batcher::end(std::optional<Fault> fault) {
    ended_ = true;
    if (!end_fault_) end_fault_ = std::move(fault);
    consumer_.notify_one();
}

// ---- Consumer -----------------------------------------------------------------------------------

bool Batcher::complete() const {
    if (makings_.empty()) return ended_;
    return makings_.front()->closed && makings_.front()->work == 0;
}

void Batcher::wait_for_batch(std::unique_lock<std::mutex>& lock,
                             const std::optional<Clock::time_point>& deadline) {
    const auto start = Clock::now();
    bool in_time = true;
    while (in_time && !complete() && !context_.cancel.requested()) {
        const auto happened = [&] {
            return complete() || context_.cancel.requested() || samples_.wants_service();
        };
        if (deadline)
            in_time = consumer_.wait_until(lock, *deadline, happened);
        else
            consumer_.wait(lock, happened);
        if (samples_.wants_service()) {
            lock.unlock();
            samples_.serve();
            lock.lock();
        }
    }
    context_.count_wait(start);
    context_.cancel.check();
    if (!in_time)
        throw Error(SHF_E_TIMEOUT, "no batch within the time of the option timeout",
                    "call again to continue waiting");
}

std::string Batcher::saved_columns() {
    const std::lock_guard lock(mutex_);
    return saved_columns_;
}

BatchRef Batcher::next(std::optional<Clock::time_point> deadline) {
    if (threads_.empty()) start();
    while (!has_whole_batch()) {
        if (bad_row_) throw Error(bad_row_->fault);
        std::unique_ptr<PendingBatch> making;
        {
            std::unique_lock lock(mutex_);
            wait_for_batch(lock, deadline);
            if (makings_.empty()) {
                if (end_fault_) throw Error(*end_fault_);
                break;  // the end
            }
            making = std::move(makings_.front());
            makings_.pop_front();
            workers_.notify_one();
        }
        // A saved stream resumes at the rows that a fault keeps from the user.
        const bool broken_off = making->broken_off;
        if (!lost_) {
            lost_ = making->start;
            lost_->begun = begun_;
        }
        Left left = collect(std::move(making));
        if (broken_off) {
            // Batches behind it would come as if nothing were missing.
            const std::lock_guard lock(mutex_);
            if (end_fault_) throw Error(*end_fault_);
        }
        add_left(std::move(left));
        if (!broken_off) lost_.reset();
    }
    const Options& options = context_.options;
    if (!has_rows() || (!has_whole_batch() && options.last == LastBatch::drop)) return nullptr;
    Start start = reorders() ? Start{} : start_of_left();
    std::vector<HandedOut> handed;
    if (buckets())
        for (const uint64_t number : left_.front().numbers) handed.push_back({.number = number});
    BatchRef batch;
    try {
        if (windows())
            batch = join_fitted(options.batch, handed);
        else if (options.pack > 0)
            batch = join_documents(elements_of_batch(options));
        else
            batch = join_rows(makes_whole_batches() ? left_.front().rows.size() : options.batch);
        mix_rows(*batch, std::as_const(plan_).columns(), allocate_copy());
    } catch (...) {
        left_.clear();
        left_rows_ = left_elements_ = row_elements_ = 0;
        lost_ = std::move(start);
        throw;
    }
    last_ = std::move(start);
    if (reorders()) {
        const std::lock_guard lock(mutex_);
        taken_.hand_out(std::move(handed));
    }
    batch->hand_out();
    samples_.wake_readers();
    return batch;
}

}  // namespace shf
