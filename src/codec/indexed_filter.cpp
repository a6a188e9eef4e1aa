#include "codec/indexed_filter.h"

#include "codec/stretch_reader.h"
#include "core/error.h"
#include "core/options.h"
#include "core/threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

namespace {

// Stretches that one decoder decompresses from one point.
struct Run {
    size_t first, last;  // behind the last one
    uint64_t start, size;
};

// Larger ones are left to one thread, stretch by stretch.
constexpr uint64_t largest_run = uint64_t{32} << 20;

// The runs of a shard; of one stretch each where they would be too large for several threads, and
// then `together` is 1.
std::vector<Run> runs_of(const DecodePoints& points, uint64_t memory, uint64_t& together) {
    std::vector<Run> runs;
    uint64_t largest = 1;
    for (size_t i = 0; i < points.size(); i = runs.back().last) {
        const size_t last = points.next_point(i);
        runs.push_back({i, last, points.starts[i], points.end(last - 1) - points.starts[i]});
        largest = std::max(largest, runs.back().size);
    }
    // Each thread has one under way, and one more is being read.
    together = std::min(together, memory / 4 / largest > 1 ? memory / 4 / largest - 1 : 1);
    if (largest > largest_run) together = 1;
    if (together > 1) return runs;
    runs.clear();
    for (size_t i = 0; i < points.size(); ++i)
        runs.push_back({i, i + 1, points.starts[i], points.end(i) - points.starts[i]});
    return runs;
}

// What is wrong is in the bytes of the shard or the index, and not in how they are read.
bool is_of_bytes(int32_t code) {
    return code == SHF_E_FORMAT || code == SHF_E_TRUNCATED || code == SHF_E_INTEGRITY ||
           code == SHF_E_LIMIT || code == SHF_E_UNSUPPORTED;
}

// Decompressed runs, in order.
class RunQueue {
  public:
    RunQueue(Source& source, const DecodePoints& points, const Options& options,
             const Cancel& cancel, uint64_t threads)
        : source_(source),
          points_(points),
          options_(options),
          cancel_(cancel),
          wanted_(threads),
          runs_(runs_of(points, options.memory, wanted_)),
          slots_(wanted_ > 1 ? static_cast<size_t>(wanted_) + 1 : 1) {}
    RunQueue(const RunQueue&) = delete;
    RunQueue& operator=(const RunQueue&) = delete;
    ~RunQueue() {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        work_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    // The run that an offset below the length lies in.
    [[nodiscard]] size_t run_at(uint64_t offset) const {
        const auto after =
            std::upper_bound(runs_.begin(), runs_.end(), offset,
                             [](uint64_t value, const Run& run) { return value < run.start; });
        return static_cast<size_t>(after - runs_.begin()) - 1;
    }
    [[nodiscard]] const Run& operator[](size_t run) const { return runs_[run]; }

    // The bytes of a run, which stay until the next call. Runs are asked for in ascending order.
    // Throws Error.
    const uint8_t* get(size_t run) {
        Slot& slot = slots_[run % slots_.size()];
        if (wanted_ == 1) {
            if (!own_) own_.emplace(source_, points_, options_);
            decompress(*own_, run, slot);
            return slot.bytes.get();
        }
        std::unique_lock lock(mutex_);
        // All before it are let go, those under way when they are done.
        current_ = run;
        next_ = std::max(next_, run);
        for (Slot& other : slots_)
            if (other.state == State::done && other.run < run) other.state = State::empty;
        work_.notify_all();
        lock.unlock();
        start();  // not before they know where
        lock.lock();
        while (slot.state != State::done || slot.run != run) {
            if (done_.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::timeout) {
                lock.unlock();
                cancel_.check();
                lock.lock();
            }
        }
        if (slot.failure) std::rethrow_exception(slot.failure);
        return slot.bytes.get();
    }

  private:
    enum class State : uint8_t { empty, busy, done };
    struct Slot {
        State state = State::empty;
        size_t run = 0;
        std::exception_ptr failure;
        std::unique_ptr<uint8_t[]> bytes;
        uint64_t capacity = 0;
    };

    void start() {
        while (threads_.size() < wanted_) {
            try {
                start_thread(threads_, "decompressors", wanted_, [this] { work(); });
            } catch (const Error&) {
                if (threads_.empty()) throw;
                return;  // those that run are enough
            }
        }
    }

    void work() {
        StretchReader reader(source_, points_, options_);
        std::unique_lock lock(mutex_);
        for (;;) {
            work_.wait(lock, [this] { return stop_ || can_begin(); });
            if (stop_) return;
            const size_t run = next_++;
            Slot& slot = slots_[run % slots_.size()];
            slot.state = State::busy;
            slot.run = run;
            slot.failure = nullptr;
            lock.unlock();
            try {
                decompress(reader, run, slot);
            } catch (...) {
                slot.failure = std::current_exception();
            }
            lock.lock();
            slot.state = run < current_ ? State::empty : State::done;
            if (slot.state == State::empty) work_.notify_all();
            done_.notify_one();
        }
    }

    // Under the mutex.
    [[nodiscard]] bool can_begin() const {
        return next_ < runs_.size() && next_ < current_ + slots_.size() &&
               slots_[next_ % slots_.size()].state == State::empty;
    }

    void decompress(StretchReader& reader, size_t number, Slot& slot) const {
        const Run& run = runs_[number];
        if (slot.capacity < run.size) {
            slot.bytes = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(run.size));
            slot.capacity = run.size;
        }
        for (size_t i = run.first; i < run.last; ++i)
            reader.read(i, {slot.bytes.get() + (points_.starts[i] - run.start),
                            static_cast<size_t>(points_.end(i) - points_.starts[i])});
    }

    Source& source_;
    const DecodePoints& points_;
    const Options& options_;
    const Cancel& cancel_;
    uint64_t wanted_;  // threads; 1: the caller's
    const std::vector<Run> runs_;
    std::optional<StretchReader> own_;

    std::mutex mutex_;  // all below but the bytes of busy slots
    std::condition_variable work_, done_;
    std::vector<Slot> slots_;  // run i in slot i modulo their number
    size_t current_ = 0;       // the run that is read
    size_t next_ = 0;          // the run that is begun next
    bool stop_ = false;
    std::vector<std::thread> threads_;
};

class IndexedFilter final : public Sequential {
  public:
    IndexedFilter(Source& source, std::shared_ptr<const DecodePoints> points,
                  const Options& options, const Cancel& cancel, uint64_t threads,
                  FilterReport& report)
        : source_(source),
          points_(std::move(points)),
          options_(options),
          cancel_(cancel),
          report_(report) {
        report_.codec = points_->codec.c_str();
        queue_.emplace(source, *points_, options, cancel, threads);
    }

    size_t read(std::span<uint8_t> out) override {
        if (plain_) return plain_->read(out);
        if (position_ == points_->length || out.empty()) return 0;
        if (position_ >= end_) {
            try {
                const size_t run = queue_->run_at(position_);
                bytes_ = queue_->get(run);
                start_ = (*queue_)[run].start;
                end_ = start_ + (*queue_)[run].size;
            } catch (const Error& error) {
                if (!is_of_bytes(error.code())) throw;
                begin_plain();
                return plain_->read(out);
            }
        }
        const auto count = static_cast<size_t>(std::min<uint64_t>(out.size(), end_ - position_));
        std::memcpy(out.data(), bytes_ + (position_ - start_), count);
        position_ += count;
        report_.verified = std::max(report_.verified, position_);
        return count;
    }

    bool skip(uint64_t size) override {
        if (plain_ || size > points_->length - position_) return false;
        position_ += size;
        report_.verified = std::max(report_.verified, position_);
        return true;
    }
    void finish() override { plain_ ? plain_->finish() : source_.verify(); }

  private:
    // Something is wrong with the shard, or the index.
    void begin_plain() {
        queue_.reset();
        plain_ = open_filter(source_.open_sequential(0), options_, report_);
        std::vector<uint8_t> passed(size_t{256} << 10);
        for (uint64_t left = position_; left > 0;) {
            cancel_.check();
            const size_t count = plain_->read(std::span(passed).first(
                static_cast<size_t>(std::min<uint64_t>(left, passed.size()))));
            if (count == 0) return;  // the end is said again
            left -= count;
        }
    }

    Source& source_;
    const std::shared_ptr<const DecodePoints> points_;
    const Options& options_;
    const Cancel& cancel_;
    FilterReport& report_;
    std::optional<RunQueue> queue_;
    std::unique_ptr<Sequential> plain_;
    uint64_t position_ = 0;  // in the output
    const uint8_t* bytes_ = nullptr;
    uint64_t start_ = 0, end_ = 0;  // of these bytes in the output
};

}  // namespace

std::unique_ptr<Sequential> open_indexed_filter(Source& source,
                                                std::shared_ptr<const DecodePoints> points,
                                                const Options& options, const Cancel& cancel,
                                                uint64_t threads, FilterReport& report) {
    return std::make_unique<IndexedFilter>(source, std::move(points), options, cancel, threads,
                                           report);
}

}  // namespace shf
