// Reads one shard from front to back and groups its members into samples.
#pragma once

#include "sample/carrier.h"
#include "sample/key_set.h"

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace shf {

// Who takes what a reader finds, in the order of the shard.
class SampleSink {
  public:
    virtual ~SampleSink() = default;
    // Returns when `bytes` more memory may be taken, or throws Error(CANCELLED).
    virtual void admit(size_t bytes) = 0;
    virtual void deliver(BlockRef block) = 0;
    // The shard is compressed: what is read of it ahead of time is worth keeping.
    virtual void is_compressed() = 0;
    // The reader will wait for another process or host; what was delivered should be seen now.
    virtual void about_to_wait() = 0;
    // One sample is bad, the next one can be reached. The sample was dropped.
    virtual void bad_sample(Fault fault) = 0;
};

class SampleReader final : private CarrierClient {
  public:
    // All references must outlive the reader. `single_samples`: see BlockBuilder.
    SampleReader(Source& source, std::shared_ptr<const Origin> origin, const Options& options,
                 bool single_samples, Pool& pool, const Cancel& cancel, Stats& stats,
                 SampleSink& sink);

    // Delivers every sample and returns when the end of the shard is proven. Throws Error when the
    // rest of the shard cannot be trusted or reached; the whole samples before that were delivered,
    // a partial one was dropped.
    void read();

  private:
    void admit(size_t bytes) override { sink_.admit(bytes); }
    void about_to_wait() override;
    void is_compressed() override { sink_.is_compressed(); }
    size_t next_slab_size() override;

    void read_members();
    void take_member(const Member& member);
    bool join_sample(const Member& member, std::string_view key);
    void add_field(const Member& member, std::string_view suffix);
    void store_field(const Member& member);
    bool add_name(std::string_view suffix);
    [[nodiscard]] size_t find_field(std::string_view name) const;
    void spoil(std::string_view name, uint64_t at, int32_t code, std::string cause,
               std::string help);
    void spoil(std::string_view name, uint64_t at, Fault fault);
    void complete_sample();
    std::shared_ptr<const Schema> schema_of_names();

    Source& source_;
    const std::shared_ptr<const Origin> origin_;
    const Options& options_;
    const bool single_samples_;
    Pool& pool_;
    const Cancel& cancel_;
    Stats& stats_;
    SampleSink& sink_;
    BlockBuilder builder_;
    Carrier* carrier_ = nullptr;  // during read()

    // The sample under construction.
    bool in_sample_ = false, spoiled_ = false;
    std::string key_;
    uint64_t key_hash_ = 0, first_header_ = 0, sample_bytes_ = 0;
    std::vector<uint64_t> headers_;  // of its fields: where each one starts
    // The names of the fields are the first ones of schema_ as long as matched_ == headers_.size();
    // else they are in names_.
    size_t matched_ = 0;
    Schema names_;
    std::unordered_set<std::string> many_names_;  // only when there are many fields

    std::shared_ptr<const Schema> schema_;                // of the sample before
    std::vector<std::shared_ptr<const Schema>> schemas_;  // the last ones
    std::vector<LooseField> loose_;
    KeySet keys_seen_;
    uint64_t samples_ = 0;  // whole or spoiled
    size_t last_slab_size_ = 0;
};

}  // namespace shf
