// Reads one shard from front to back and puts its samples into blocks.
#pragma once

#include "codec/decode_points.h"
#include "sample/grouper.h"

#include <memory>
#include <optional>
#include <span>

namespace shf {

// Who takes what a reader finds, in the order of the shard.
class SampleSink {
  public:
    virtual ~SampleSink() = default;
    virtual void deliver(BlockRef block) = 0;
    // One sample is bad, the next one can be reached. The sample was dropped. `wanted`: the filter
    // would not have left it out.
    virtual void bad_sample(Fault fault, bool wanted) = 0;
    // Where the members of a whole sample lie, when the request asks for places; not called for
    // shards whose members are not plain bytes of the file.
    virtual void found(const GroupedSample& /*sample*/) {}
};

class SampleReader final : private GrouperClient {
  public:
    // All references must outlive the reader.
    SampleReader(Source& source, std::shared_ptr<const Origin> origin, const ReadContext& context,
                 SampleSink& sink, SampleRequest request = {});

    // Delivers every wanted sample, or those that the request resumes, and returns when the end of
    // the shard is proven, or nothing more is wanted. Throws Error when the rest of the shard
    // cannot be trusted or reached; the whole samples before that were delivered, a partial one was
    // dropped.
    void read();
    // Delivers the whole samples so far. For a gate, before the reader waits.
    void flush() { builder_.flush(); }
    // After read(): the samples of the whole shard that the filter left over, whole or bad; nothing
    // when reading stopped before its end.
    [[nodiscard]] std::optional<uint64_t> found() const { return found_; }
    // After read(): whether it came as far as the first member of the shard, or its proven end.
    [[nodiscard]] bool opened() const { return opened_; }
    // Where the end marker of the shard starts, after read().
    [[nodiscard]] uint64_t end() const { return end_; }
    // After read(), of a compressed shard whose places were asked for: where its decompression can
    // start.
    [[nodiscard]] const std::optional<DecodePoints>& points() const { return points_; }

  private:
    void sample(const GroupedSample& sample) override;
    void count_unverified(std::span<const LooseField> fields);
    void bad_sample(Fault fault, bool wanted) override;

    Source& source_;
    const std::shared_ptr<const Origin> origin_;
    const ReadContext context_;
    SampleSink& sink_;
    const SampleRequest request_;
    SlabSizer sizer_;
    BlockBuilder builder_;
    bool places_ = false;  // the sink gets the places of samples
    bool opened_ = false;
    std::optional<uint64_t> found_;
    uint64_t end_ = 0;
    std::optional<DecodePoints> points_;
    const uint64_t* verified_ = nullptr;  // as Carrier has it, during read()
    uint64_t last_verified_ = 0;          // its value at the last sample
    uint64_t unverified_ = 0;             // samples delivered that end beyond it
};

}  // namespace shf
