// Makes batches of any sequence of samples, ahead of the consumer. Its threads take turns at taking
// samples in the order of the plan and giving them rows; what takes time to decode is done by all
// of them. Which thread does what decides when a batch is complete, never what is in it.
#pragma once

#include "batch/batch_builder.h"
#include "batch/rows.h"
#include "order/lane_state.h"
#include "stream/sequence_tree.h"
#include "stream/taken_samples.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace shf {

// Samples of one block that come next, one after another.
struct SampleRun {
    BlockRef block;
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t begin = 0;  // the first one when it was taken
    // The position before it; of a run that may be of several samples.
    std::shared_ptr<const Position> before;
};

class Batcher {
  public:
    // Starts no thread. Throws Error(USAGE) for a bad option "decode". The samples, which must
    // outlive it, are pulled by its threads from the first call of next() on.
    explicit Batcher(SequenceTree& samples);
    // After the stream was cancelled.
    ~Batcher() { join(); }
    Batcher(const Batcher&) = delete;
    Batcher& operator=(const Batcher&) = delete;

    // The next batch; NULL at the end. Waits until `deadline`, when there is one. Throws Error.
    BatchRef next(std::optional<Clock::time_point> deadline);
    // The position of the first sample that no batch has had, or of the last batch when it
    // was not used. On the consumer's thread.
    [[nodiscard]] Position position(bool unused_batch);
    [[nodiscard]] bool gave_batch() const { return last_.has_value(); }
    // A stream resumes in the middle of these samples, with the option pack, and where the user
    // has had some of those that come next, with the options bucket and pack_window. Before the
    // first call of next().
    void restore_given(std::vector<WaitingAndGiven> given, std::vector<BegunSample> begun);
    // What the first rows decided of the columns, for a stream that resumes: see BatchPlan.
    [[nodiscard]] std::string saved_columns();
    void restore_columns(std::string_view text) { plan_.restore_columns(text); }
    // Ends the threads, after the stream was cancelled.
    void join() noexcept;
    // The stream was cancelled, or an allocation waits for the consumer. Any thread.
    void wake();

  private:
    // The position of a sample: so many samples after another position.
    struct Start {
        std::shared_ptr<const Position> before;
        uint64_t skip = 0;             // all of one lane, and then
        std::vector<LanePlace> lanes;  // one of each of these
        std::vector<BegunSample> begun = {};

        [[nodiscard]] Position position() const;
    };
    // A batch in the making; its rows become a batch, or parts of two when some fail.
    struct PendingBatch {
        explicit PendingBatch(BatchPlan& plan, uint64_t capacity, Allocate allocate,
                              uint64_t bound = 0)
            : builder(plan, capacity, std::move(allocate), bound) {}
        BatchBuilder builder;
        std::vector<BlockRef> blocks;  // of work that waits for the last row
        uint64_t work = 0;             // handed out and not done
        bool closed = false;
        bool whole = false;              // it is a batch, however many rows it has
        bool broken_off = false;         // by a fault; its rows go nowhere
        std::atomic<uint64_t> bytes{0};  // of its columns
        // Of a row that could not be decoded, or of a sample that would have been row `row`.
        struct Failure {
            // In the place of a column: the sample was bad as a whole.
            static constexpr uint32_t never_added = UINT32_MAX;
            uint64_t row;
            uint32_t column;
            [[nodiscard]] bool is_of_sample() const { return column == never_added; }
            Fault fault;
        };
        std::vector<Failure> failures;
        uint64_t kept_bytes = 0;  // of `blocks`; of the thread that takes
        Start start;
        std::vector<LanePlace> lanes;  // of the samples that were taken, also of those without row
        std::vector<uint32_t> before;  // of each row: samples taken before its own
        // With the option batch_elements: of the sample after the first of `lanes`, which was
        // taken before there was this batch. NULL: a run says it.
        std::shared_ptr<const Position> after_first;
        // With the options bucket and pack_window: of the samples, as taken_ has them; those of
        // rows first, in their order.
        std::vector<uint64_t> numbers;
        std::vector<uint64_t> bad_numbers;  // likewise, of samples that have no row
        // With the option pack_window, of each row: elements that were given before the stream
        // resumed.
        std::vector<uint64_t> given;
    };
    struct Task {
        PendingBatch* making;
        std::vector<DecodeWork> work;
        std::vector<BlockRef> blocks;
        bool tokenizes = false;  // the texts of all rows
    };
    // Rows that were decoded and have not been handed out.
    struct Left {
        BatchRef batch;
        std::vector<uint64_t> rows;  // those that did not fail
        size_t next = 0;
        bool whole = false;  // as of the batch in the making, as are the next ones
        std::vector<uint64_t> numbers;
        std::vector<uint64_t> given;
        Start start;
        std::vector<LanePlace> lanes;
        std::vector<uint32_t> before;
        // With the option pack_window: rows of parts of the samples, of which some may be taken.
        std::deque<std::vector<DocumentPart>> packed;
        // Samples that were begun before the stream resumed: the number among `lanes`, and how
        // many elements rows have had.
        std::vector<std::pair<uint32_t, uint64_t>> begun;

        // Where a stream that begins with this row resumes.
        [[nodiscard]] Start start_of(uint64_t row) const;
        // Of the next row: its number among `lanes`.
        [[nodiscard]] uint32_t next_sample() const { return before[rows[next]]; }
        [[nodiscard]] Start next_start() const;
        // Elements of a row's sample that other rows had before the stream resumed.
        [[nodiscard]] uint64_t begun_elements(uint64_t row) const;
    };

    // A row that was bad, behind rows that come first; its sample's position.
    struct BadRow {
        Fault fault;
        Start start;
    };

    void start();
    void run() noexcept;
    SampleRun take_run();
    void do_task(Task task, DecodeScratch& scratch);
    // The tokenizer: batcher_tokens.cpp.
    [[nodiscard]] bool tokenizes() const { return context_.options.tokenizer != nullptr; }
    void make_tokens(PendingBatch& making, std::vector<PendingBatch::Failure>& failures);
    // Rows before a bad text are packed all the same.
    [[nodiscard]] bool keeps_rows_before_fault() const {
        return tokenizes() && !windows() && context_.options.on_error == OnError::raise;
    }
    void end_with(Fault fault, const Left& left, uint64_t row);
    void check_tokens(const BatchBuilder& builder, std::span<const shf_text> samples,
                      std::vector<PendingBatch::Failure>& failures) const;
    [[nodiscard]] bool may_take() const;
    void take_rows(DecodeScratch& scratch);
    void decode_at_once(PendingBatch& making, const DecodeWork& work, DecodeScratch& scratch);
    void open_making();
    // What became of a sample.
    enum class Took : uint8_t { row, none, no_room };
    Took add_row(PendingBatch& making, uint32_t sample);
    std::optional<uint64_t>& epoch_of_rows(const Origin& origin);
    static void check_epoch(const Origin& origin, const std::optional<uint64_t>& epoch_of_row);
    void account(PendingBatch& making);
    void hand_out_work(PendingBatch& making, std::vector<DecodeWork> work, const BlockRef& block);
    [[nodiscard]] Start start_of_next_sample();
    [[nodiscard]] Start start_of_refused_sample();
    std::vector<Task> close_builder(PendingBatch& making);
    void publish(PendingBatch& making, std::vector<Task> tasks);
    void close_making(Start next, bool no_room = false);
    void break_off(Start next) noexcept;
    void abandon() noexcept;
    void close_unfinished() noexcept;
    void end(std::optional<Fault> fault);
    [[nodiscard]] bool complete() const;
    void wait_for_batch(std::unique_lock<std::mutex>& lock,
                        const std::optional<Clock::time_point>& deadline);
    void check_packing() const;
    void check_counting() const;
    // Each batch in the making is one for the user; what fails in it makes it shorter.
    [[nodiscard]] bool makes_whole_batches() const {
        return buckets() || context_.options.batch_elements > 0;
    }
    // The option bucket: batcher_buckets.cpp.
    [[nodiscard]] bool buckets() const { return !plan_.bounds().empty(); }
    void take_into_buckets(DecodeScratch& scratch);
    // Samples come to the user in another order than they are taken in: taken_ says which he has.
    [[nodiscard]] bool reorders() const { return buckets() || windows(); }
    [[nodiscard]] bool take_run_between(bool keeps);
    TakenSamples::Taken take_from_run(uint32_t sample);
    uint64_t put_into_bucket(uint32_t sample, DecodeScratch& scratch);
    PendingBatch& bucket_of(const MeasuredSample& measured);
    void check_memory_of_buckets() const;
    void close_bucket(size_t number, bool whole);
    void close_waiting_buckets(uint64_t taken);
    void report_failures();
    void end_buckets();
    // The option pack_window: batcher_windows.cpp.
    [[nodiscard]] bool windows() const { return context_.options.pack_window > 0; }
    void take_window(DecodeScratch& scratch);
    void begin_window(uint64_t number);
    void put_into_window(uint32_t sample, DecodeScratch& scratch);
    void fit_window(Left& left);
    BatchRef join_fitted(uint64_t most, std::vector<HandedOut>& handed);
    Left collect(std::unique_ptr<PendingBatch> making);
    void add_left(Left left);
    [[noreturn]] static void throw_begun_too_far(const Left& left, uint64_t row, uint64_t had);
    [[nodiscard]] bool has_whole_batch() const;
    [[nodiscard]] bool has_rows() const;
    BatchRef join_rows(uint64_t most);
    BatchRef join_documents(uint64_t most);
    void end_document(std::vector<BatchRef>& used);
    [[nodiscard]] Start start_of_left() const;
    Start start_of_making();
    Allocate allocate_copy();
    void find_begun(Left& left);
    [[nodiscard]] std::vector<BegunSample> begun_samples() const;

    SequenceTree& samples_;
    StreamContext& context_;
    BatchPlan plan_;
    const uint64_t threads_wanted_;
    const uint64_t most_makings_;
    std::vector<std::thread> threads_;

    std::mutex mutex_;  // guards all below
    std::condition_variable workers_, consumer_;
    std::deque<std::unique_ptr<PendingBatch>> makings_;  // in order; the last one may be open
    std::deque<Task> tasks_;
    bool taking_ = false;  // a thread is at it
    bool ended_ = false;   // there are no more samples
    std::optional<Fault> end_fault_;
    Start next_start_;  // of the batch that will be made next
    std::string saved_columns_;
    // Rows of all batches made so far that did not fail, modulo the size of a batch.
    uint64_t phase_ = 0;
    uint64_t usual_bytes_ = 0;

    // Of the thread that takes.
    SampleRun run_;
    // In which the latest row was added, for each part of a mix.
    std::vector<std::optional<uint64_t>> epochs_of_rows_;
    PendingBatch* open_ = nullptr;
    MeasuredSample measured_;
    uint64_t window_end_ = 0;  // with the option pack_window: number of the sample after it
    // With the option bucket: batches in the making by bucket, or NULL; samples that were bad as a
    // whole, and that the next batch reports; the number of the sample before which a position was
    // kept last.
    std::vector<std::unique_ptr<PendingBatch>> buckets_;
    std::vector<PendingBatch::Failure> bad_;
    std::vector<uint64_t> bad_numbers_;
    std::optional<uint64_t> anchored_;
    bool closed_ = false;  // a bucket, since a thread began to take

    // Of both, where samples come in another order; guarded by mutex_.
    TakenSamples taken_;

    // Of the consumer.
    std::deque<Left> left_;
    uint64_t left_rows_ = 0;
    // With the option pack: elements that are left, and those of the next row that rows have had.
    uint64_t left_elements_ = 0, row_elements_ = 0;
    std::vector<BegunSample> begun_;  // in which the stream resumes, and that did not come yet
    std::optional<BadRow> bad_row_;   // after which there are no more
    std::optional<Start> lost_;       // of a batch that ended in a fault
    std::optional<Start> last_;       // of the batch that was handed out last
};

}  // namespace shf
