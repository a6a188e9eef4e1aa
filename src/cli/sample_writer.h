// What verbs that make shards of samples have in common: the output, which fields are written, new
// keys.
#pragma once

#include "cli/arguments.h"
#include "cli/field_list.h"
#include "cli/number_pattern.h"
#include "cli/sample_view.h"
#include "cli/shard_target.h"

#include <optional>
#include <string>
#include <vector>

namespace cli {

class SampleWriter {
  public:
    // Adds -o, -f, --missing, -R and --json.
    void declare(Arguments& arguments);
    // `as_tarp`: tars have the headers of tarp, and samples without a key get one of their number.
    // Throws Failure.
    void open(const LibraryOptions& options, bool as_tarp);

    void write(const SampleView& sample);
    // That in two steps. Leaves those fields of the sample that are written, in `room`, which must
    // outlive it; false: the sample is left out.
    bool choose(SampleView& sample, std::vector<FieldView>& room) const;
    void write_chosen(const SampleView& sample);
    // As it is, where nothing of it changes.
    void write(const shf_sample* sample);
    // Publishes the last shard.
    void finish() { target_->finish(); }

  private:
    std::string output_ = "-";
    std::vector<std::string> fields_;
    std::string missing_ = "fail";
    std::string rekey_;
    bool json_ = false;

    std::optional<FieldList> wanted_;
    std::optional<NumberPattern> keys_;
    std::optional<NumberPattern> missing_keys_;
    std::optional<ShardTarget> target_;
    std::vector<FieldView> room_;
    std::vector<FieldView> chosen_;
    uint64_t written_ = 0;
};

}  // namespace cli
