// A pass over all samples of shards that goes on behind damage, for reports and checks.
#pragma once

#include "cli/interrupts.h"
#include "cli/library.h"
#include "cli/library_options.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cli {

// What is wrong with a shard or sample.
struct ShardFault {
    std::string code;  // "TRUNCATED"
    std::string key;   // of the sample; empty where none is known to be at fault
    std::string message;
    uint64_t offset;   // UINT64_MAX: there is none
    bool whole_shard;  // the rest of the shard is lost

    ShardFault(int32_t code_is, std::string message_is);
    ShardFault(const shf_error& error, std::string_view key_is, bool whole_shard_is);

    [[nodiscard]] std::string json() const;
};

// One consumer reads every sample once, in the order of the shards, whatever the options say of
// ranks, epochs and shuffles. What is damaged is skipped and kept in faults().
class CheckPass {
  public:
    // The first `kept` faults are kept whole; all are counted.
    static constexpr size_t kept = 100;

    CheckPass(const std::vector<std::string>& urls, Options options);
    CheckPass(const CheckPass&) = delete;
    CheckPass& operator=(const CheckPass&) = delete;

    // What such a pass reads with: a copy of `options`.
    static Options options_of(const LibraryOptions& options);

    // Calls `use` with each block (const shf_block*). Throws Failure for what ends the pass.
    template <typename Use>
    void run_blocks(Use use) {
        for (;;) {
            shf_block* opened = nullptr;
            if (call(shf_stream_next_block, stream_.get(), size_t{0}, &opened) == SHF_END) return;
            const Block block(opened);
            use(opened);
        }
    }
    // Calls `use` with each sample (const shf_sample*), likewise.
    template <typename Use>
    void run(Use use) {
        run_blocks([&](const shf_block* block) {
            const size_t count = shf_block_sample_count(block);
            for (size_t i = 0; i < count; ++i) use(shf_block_sample(block, i));
        });
    }

    [[nodiscard]] const std::vector<ShardFault>& faults() const { return faults_; }
    [[nodiscard]] uint64_t fault_count() const { return fault_count_; }
    [[nodiscard]] uint64_t counter(int32_t what) const {
        return shf_stream_stat(stream_.get(), what);
    }
    // Counters of what is worth a look, such as members that were ignored: those that are not 0.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> notable_counters() const;

  private:
    Stream open(const std::vector<std::string>& urls);
    static void skipped(void* pass, const shf_skip* skip);

    std::vector<ShardFault> faults_;
    uint64_t fault_count_ = 0;
    Options options_;
    Stream stream_;
    Cancellable cancellable_;
};

// {"links":3,...}
std::string counters_json(const std::vector<std::pair<std::string, uint64_t>>& counters);

}  // namespace cli
