// Reads one shard from front to back and puts its samples into blocks.
#pragma once

#include "sample/grouper.h"

#include <memory>
#include <optional>
#include <vector>

namespace shf {

// Who takes what a reader finds, in the order of the shard.
class SampleSink {
  public:
    virtual ~SampleSink() = default;
    // Returns when `bytes` more memory may be taken, or throws Error(CANCELLED).
    virtual void admit(size_t bytes) = 0;
    virtual void deliver(BlockRef block) = 0;
    // The shard takes long to decompress: what is read of it ahead of time is worth its memory.
    virtual void is_slow() = 0;
    // The reader will wait for another process or host; what was delivered should be seen now.
    virtual void about_to_wait() = 0;
    // One sample is bad, the next one can be reached. The sample was dropped. `wanted`: the filter
    // would not have left it out.
    virtual void bad_sample(Fault fault, bool wanted) = 0;
    // Whether it wants to know where samples lie.
    [[nodiscard]] virtual bool wants_places() const { return false; }
    // Where the members of a whole sample lie; not called for shards whose members are not plain
    // bytes of the file.
    virtual void found(const GroupedSample& /*sample*/, std::span<const MemberPlace> /*places*/) {}
};

class SampleReader final : private CarrierClient, private GrouperClient {
  public:
    // All references must outlive the reader. `single_samples`: see BlockBuilder. `filter`: see
    // Grouper.
    SampleReader(Source& source, std::shared_ptr<const Origin> origin, const Options& options,
                 bool single_samples, Pool& pool, const Cancel& cancel, Stats& stats,
                 SampleSink& sink, const SampleFilter* filter = nullptr);

    // Hardly more than so many bytes are wanted: for memory and reads of that size. Before read().
    void expect(uint64_t bytes) { expected_ = bytes; }
    // Of large fields that `fields` holds for only the start is read; who wants the rest reads it
    // from `source`, the same shard. Only for plain files. Before read().
    void defer(const FieldTest& fields, std::shared_ptr<Source> source) {
        deferred_ = &fields;
        builder_.set_source(std::move(source));
    }
    // Delivers every wanted sample, or those that `resume` wants again, and returns when the end of
    // the shard is proven, or nothing more is wanted. Throws Error when the rest of the shard
    // cannot be trusted or reached; the whole samples before that were delivered, a partial one was
    // dropped.
    void read(const Resume* resume = nullptr);
    // After read(): the samples of the whole shard that the filter left over, whole or bad; nothing
    // when reading stopped before its end.
    [[nodiscard]] std::optional<uint64_t> found() const { return found_; }
    // After read(): whether it came as far as the first member of the shard, or its proven end.
    [[nodiscard]] bool opened() const { return opened_; }
    // Where the end marker of the shard starts, after read().
    [[nodiscard]] uint64_t end() const { return end_; }

  private:
    void admit(size_t bytes) override { sink_.admit(bytes); }
    void about_to_wait() override;
    void is_slow() override { sink_.is_slow(); }
    size_t next_slab_size() override;

    void sample(const GroupedSample& sample) override;
    void count_unverified();
    void bad_sample(Fault fault, bool wanted) override;

    Source& source_;
    const std::shared_ptr<const Origin> origin_;
    const Options& options_;
    const bool single_samples_;
    Pool& pool_;
    const Cancel& cancel_;
    Stats& stats_;
    SampleSink& sink_;
    const SampleFilter* const filter_;
    BlockBuilder builder_;
    Carrier* carrier_ = nullptr;  // during read()
    std::vector<LooseField> loose_;
    const bool wants_places_;
    std::vector<MemberPlace> places_;
    bool opened_ = false;
    std::optional<uint64_t> found_;
    uint64_t end_ = 0;
    const uint64_t* verified_ = nullptr;  // as Carrier has it, during read()
    uint64_t last_verified_ = 0;          // its value at the last sample
    uint64_t unverified_ = 0;             // samples delivered that end beyond it
    size_t last_slab_size_ = 0;
    uint64_t expected_ = 0;  // 0: not known
    const FieldTest* deferred_ = nullptr;
};

}  // namespace shf
