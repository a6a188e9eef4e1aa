// What the functions shf_stream_* act on: one call after another hands out samples, blocks or
// batches of a sequence, with deadlines, failures that repeat, and positions to save.
#pragma once

#include "order/stream_state.h"
#include "stream/batcher.h"
#include "stream/block_maker.h"
#include "stream/sequence_tree.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

class Stream {
  public:
    // Of shards, which `provider` reads; where it is NULL this process does. Plans; opens no shard
    // and starts no thread. Throws Error.
    Stream(std::span<const char* const> urls, const Options& options,
           std::unique_ptr<LaneProvider> provider = nullptr);
    // Of a mix by weight; without weights all are equal. Takes over what the parts have, which
    // nothing was taken from yet, unless it throws Error: they can then only be destroyed.
    Stream(std::span<Stream* const> parts, std::span<const double> weights, const Options& options);
    // Stops and joins the readers. Not to be run in a forked child.
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // The next sample, with a reference for the caller; NULL at the end. Throws Error.
    Sample* next();
    // The next samples, at most `most` (0: no bound); NULL at the end. Throws Error.
    BlockRef next_block(uint64_t most);
    // The next batch; NULL at the end. Throws Error. Of a stream with the option "batch", which
    // gives nothing else.
    BatchRef next_batch();

    // The position of the user, who has not used the last `unread` samples of the block that came
    // last, or (1) not the last batch. Throws Error.
    [[nodiscard]] StreamState save(uint64_t unread);
    // Resumes there. Before anything was taken. Throws Error; the stream then is as before.
    void restore(const StreamState& state);

    // From any thread.
    void cancel() noexcept;
    [[nodiscard]] uint64_t stat(int32_t stat) const { return tree_.stat(stat); }

  private:
    Stream(std::span<SequenceTree* const> parts, std::span<const double> weights,
           const Options& options);
    static std::vector<SequenceTree*> trees_of(std::span<Stream* const> parts);
    void prepare_consumer();
    [[nodiscard]] bool untouched() const;
    void begin_call();
    template <typename Take>
    auto guarded(Take take);
    void check_mode(bool batches) const;
    void count(uint64_t samples, uint64_t bytes);
    void note_call();
    void note_block(const Block& block);

    SequenceTree tree_;
    BlockMaker maker_;
    std::unique_ptr<Batcher> batcher_;  // with the option "batch"

    std::optional<Fault> failure_;  // of the stream; repeats
    Wait wait_;                     // of the call that the user is in

    // For save() in the middle of a block: the position at the start of some call of
    // next_block, and the lanes of the samples that were handed out since.
    struct BlockCheckpoint {
        Position position;
        std::vector<LanePlace> handed;
        uint64_t bytes = 0;
    };
    std::optional<BlockCheckpoint> checkpoint_;
    std::optional<BlockCheckpoint>
        older_checkpoint_;     // when note_ begins after the first sample of the last block
    uint64_t last_block_ = 0;  // its samples
    std::string restored_columns_;
};

}  // namespace shf
