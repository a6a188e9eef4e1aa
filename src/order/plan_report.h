// What each rank and worker of a run will read, before it starts, and what is wrong with that.
#pragma once

#include "order/plan.h"
#include "order/plan_reads.h"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace shf {

// What is known of the shards before they are opened.
struct KnownShards {
    uint64_t count = 0;
    // By number; empty when not all are known. There may be samples without bytes.
    std::vector<uint64_t> samples, bytes;
    std::string unknown;       // why, in that case
    bool needs_index = false;  // because the index of a shard that should have one is not there
};

class PlanReport {
  public:
    static constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();

    // Throws Error(USAGE) as Plan does, but not for fewer shards than consumers.
    PlanReport(const Options& options, KnownShards shards);

    // What a consumer reads in the first epoch.
    struct Share {
        uint64_t rank, worker, lanes, shards;
        uint64_t samples, bytes;  // or unknown
    };
    [[nodiscard]] uint64_t consumers() const { return plan_.consumers(); }
    // Of a consumer < consumers().
    [[nodiscard]] Share share(uint64_t consumer) const;

    // When a consumer < consumers() reads which shard in the first epoch. Throws Error(USAGE) where
    // that is not known. Any thread.
    [[nodiscard]] std::vector<ShardRead> reads(uint64_t consumer) const;

    [[nodiscard]] const KnownShards& shards() const { return known_; }

    // Each is one line: what, and after "help: " what to do.
    [[nodiscard]] std::span<const std::string> warnings() const { return warnings_; }
    // Lines for people: a summary, the first and the last consumers, the warnings.
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    // The smallest and the largest part of a consumer.
    struct Range {
        uint64_t least = unknown, most = 0;
        void add(uint64_t value);
    };

    void count();
    void count_by_index();
    void make_even();
    [[nodiscard]] uint64_t shards_of(uint64_t consumer) const;
    [[nodiscard]] Range shards_each() const;
    [[nodiscard]] Range samples_each() const;
    void warn(const std::string& cause, const std::string& help);
    void warn_of_parts();
    void warn_of_even();
    void warn_of_shuffle();
    void warn_of_lanes();
    void warn_of_memory();
    void write();

    const Options options_;
    const KnownShards known_;
    const std::vector<uint32_t> counts_;  // the same as known_.samples, as far as they fit
    Plan plan_;
    std::vector<uint64_t> samples_, bytes_;  // by consumer; empty when not known
    // By which even=drop and even=pad change the number of samples.
    uint64_t left_out_ = 0, repeated_ = 0;
    std::vector<std::string> warnings_;
    std::string text_;
};

}  // namespace shf
