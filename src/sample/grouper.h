// Groups the members of a shard into samples, by the rules of shardfeed.h ("A SAMPLE is").
#pragma once

#include "sample/carrier.h"
#include "sample/key_set.h"
#include "sample/sample_request.h"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace shf {

struct GroupedSample {
    std::string_view key;
    uint64_t first_header;  // offset in the shard
    const std::shared_ptr<const Schema>& schema;
    std::span<const LooseField> fields;  // as the feed has kept them, until the call returns
};

// Who takes what the grouper finds, in the order of the shard.
class GrouperClient {
  public:
    virtual ~GrouperClient() = default;
    // A whole sample.
    virtual void sample(const GroupedSample& sample) = 0;
    // One sample is bad and was dropped; the next one can be reached. `wanted`: the filter would
    // not have left it out.
    virtual void bad_sample(Fault fault, bool wanted) = 0;
};

class Grouper {
  public:
    // All references must outlive the grouper. The feed starts where `request.resume` says.
    Grouper(MemberFeed& feed, GrouperClient& client, const Options& options, Stats& stats,
            const SampleRequest& request = {})
        : feed_(feed),
          client_(client),
          options_(options),
          stats_(stats),
          filter_(request.filter),
          resume_(request.resume),
          deferred_(request.deferred),
          stop_(resume_ ? resume_->stop() : ShardPosition::never),
          samples_(resume_ ? resume_->position.from.number : 0),
          counted_(samples_) {}

    // Takes all members. False when it stopped earlier, because nothing more is wanted. Throws
    // Error when the feed or the client does; a partial sample is then dropped.
    bool run();
    // Samples so far, whole or bad, wanted or not.
    [[nodiscard]] uint64_t samples() const { return samples_; }
    // Those of them that the filter left over, as SampleStart counts.
    [[nodiscard]] uint64_t wanted() const { return counted_; }

  private:
    void take_member(const Member& member);
    bool join_sample(const Member& member, std::string_view key);
    void add_field(const Member& member, std::string_view suffix);
    void store_field(const Member& member, std::string_view suffix);
    bool add_name(std::string_view suffix);
    [[nodiscard]] std::string place(uint64_t header_offset) const;
    [[nodiscard]] size_t find_field(std::string_view name) const;
    void spoil(std::string_view name, uint64_t at, int32_t code, std::string cause,
               std::string help);
    void spoil(std::string_view name, uint64_t at, Fault fault);
    void complete_sample();
    std::shared_ptr<const Schema> schema_of_names();

    MemberFeed& feed_;
    GrouperClient& client_;
    const Options& options_;
    Stats& stats_;
    const SampleFilter* const filter_;
    const Resume* const resume_;
    const FieldTest* const deferred_;
    const uint64_t stop_;  // no sample from this number on is wanted

    // The sample under construction.
    bool in_sample_ = false, spoiled_ = false;
    bool wanted_ = true;        // by the filter, but for its fields
    bool any_field_ = false;    // that the filter wants
    bool passed_over_ = false;  // for `resume_`
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
    KeySet keys_seen_;
    uint64_t samples_;  // complete ones, so the number of the current one
    uint64_t counted_;  // of these, what the filter left over, as SampleStart counts
};

}  // namespace shf
