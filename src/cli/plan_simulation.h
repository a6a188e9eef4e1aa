// Shards that need not be there, for the plan of a run that is still to come.
#pragma once

#include "cli/arguments.h"
#include "cli/json_report.h"
#include "cli/library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

class PlannedShards {
  public:
    void declare(Arguments& arguments);
    // Whether shards are given in this way, and not by URLs.
    [[nodiscard]] bool given() const { return shards_ > 0 || !counts_file_.empty(); }
    // Throws Failure.
    [[nodiscard]] Plan plan(const shf_options* options) const;

  private:
    struct Counts {
        std::vector<uint64_t> samples, bytes;
    };
    [[nodiscard]] Counts counts() const;
    [[nodiscard]] Counts made_up() const;
    [[nodiscard]] Counts of_file() const;

    uint64_t shards_ = 0, samples_ = 1000, sample_bytes_ = 100'000, made_up_seed_ = 0;
    double spread_ = 0;
    std::string counts_file_;
};

// How unequal the parts of the consumers are, and what "even" would do about it.
class PlanSummary {
  public:
    explicit PlanSummary(const shf_plan* plan);

    [[nodiscard]] std::string text() const;
    [[nodiscard]] Json json() const;

  private:
    struct Parts {
        const char* name;
        uint64_t least = 0, median = 0, most = 0, sum = 0;
    };

    std::vector<Parts> parts_;  // of what is known
    uint64_t consumers_ = 0;
    // Samples; of the consumers with more than the smallest part, and with less than the largest.
    uint64_t above_least_ = 0, below_most_ = 0;
};

// The readings of shards of one consumer: four numbers each, as shf_plan_reads has them.
std::vector<uint64_t> reads_of(const shf_plan* plan, uint64_t consumer);

}  // namespace cli
