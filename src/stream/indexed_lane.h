// What a consumer reads with the option by_index: its samples of the global sequence, whose order
// and places are computed from the indexes (order/indexed_order.h). Threads read pieces of that
// sequence ahead of the consumer, each in the order of the files.
#pragma once

#include "order/indexed_order.h"
#include "order/indexed_share.h"
#include "stream/numbered_shards.h"
#include "stream/sample_lane.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace shf {

class IndexedLane final : public SampleLane {
  public:
    // `from` says the consumer, the epoch, and how many samples were taken since which element.
    // Throws Error(FORMAT) when no consumer can stand there.
    IndexedLane(LaneContext& context, const LaneState& from);

    // ---- Readers. Several threads. ----
    // Reads ahead until the end, or until the stream was cancelled.
    void read_ahead() noexcept;
    // Whether the shards lie on a network.
    [[nodiscard]] bool is_remote() const { return remote_; }

    // ---- Consumer ----
    Pull pull(Delivery& out) override;
    Pull pull_block(BlockRef& /*out*/, uint64_t /*most*/) override { return Pull::sample; }
    void begin_epoch(uint64_t epoch) override;
    [[nodiscard]] uint32_t number() const override { return number_; }
    [[nodiscard]] const std::optional<Fault>& unopened() const override { return unopened_; }
    [[nodiscard]] bool opened() const override { return true; }
    [[nodiscard]] LaneState position(uint64_t epoch, uint64_t taken) const override;
    // context.mutex is held.
    void cancel() override { room_.notify_all(); }

  private:
    // A sample that was read, or what is wrong with it.
    struct Slot {
        Delivery sample;
        std::unique_ptr<const Fault> fault;
        uint64_t bytes = 0;
    };
    struct Wanted {
        uint64_t shard, number;
        bool padding;
    };
    // Samples of one epoch that follow one another, which one thread reads.
    struct Piece {
        uint64_t epoch = 0;
        std::vector<Wanted> wanted;
        // Guarded by context.mutex.
        std::vector<Slot> slots;
        size_t ready = 0;  // from the front
        size_t given = 0;
        std::optional<Fault> failure;  // what comes behind those
    };
    using PieceRef = std::shared_ptr<Piece>;

    [[nodiscard]] IndexedShare share(uint64_t base) const { return {dealing_, number_, base}; }
    // The shards of a piece, by number; NULL: it could not be opened.
    using Shards = std::map<uint64_t, std::shared_ptr<const NumberedShards::Shard>>;

    PieceRef next_piece();
    bool plan_piece(Piece& piece);
    void read(Piece& piece);
    std::vector<uint64_t> sizes_of(const Piece& piece, Shards& shards);
    std::vector<Slot> read_samples(const Piece& piece, size_t first, size_t last,
                                   const Shards& shards);
    void read_of_shard(const Piece& piece, std::span<const size_t> places, size_t first,
                       const Shards& shards, std::span<Slot> out);
    void at_once(size_t count, const std::function<void(size_t)>& work) const;
    bool wait_for_room(uint64_t bytes, const Piece* piece);
    bool fetch();

    LaneContext& context_;
    const uint32_t number_;
    const Dealing dealing_;
    NumberedShards shards_;
    const bool remote_;
    const uint64_t piece_bytes_, most_samples_;  // of a piece, about

    // The readers': one of them plans at a time.
    std::mutex planning_;
    uint64_t planned_epoch_, planned_;  // samples of it since its base
    std::optional<IndexedShare> planned_share_;
    std::unique_ptr<IndexedOrder> order_;  // of planned_epoch_
    bool wrapped_ = false;                 // it is in samples that are repeated
    std::atomic<uint64_t> bytes_read_{0}, samples_read_{0};

    // Guarded by context.mutex.
    std::condition_variable room_;
    std::deque<PieceRef> pieces_;
    uint64_t queued_bytes_ = 0;
    std::optional<Fault> failure_;  // of planning: after all pieces

    // The consumer's.
    std::deque<Slot> slots_;
    std::optional<Fault> unopened_;
    uint64_t epoch_, base_;
    uint64_t taken_ = 0, count_ = 0;  // of this epoch since base_
};

class IndexedLanes final : public LaneProvider {
  public:
    ~IndexedLanes() override { join(); }
    [[nodiscard]] std::optional<std::vector<uint32_t>> counts() const override {
        return std::nullopt;
    }
    std::unique_ptr<SampleLane> lane(LaneContext& context, const LaneState& from) override;
    void repeat() noexcept override {}
    void start(LaneContext& context, std::span<const std::unique_ptr<SampleLane>> lanes) override;
    [[nodiscard]] bool started() const override { return !threads_.empty(); }
    void join() noexcept override;

  private:
    std::vector<std::thread> threads_;
};

}  // namespace shf
