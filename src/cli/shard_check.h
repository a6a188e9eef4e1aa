// All checks of one shard: its bytes, its samples, what is in their fields, and its index.
#pragma once

#include "cli/check_pass.h"
#include "cli/library_options.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace cli {

struct ShardVerdict {
    std::string url;
    std::string format;
    std::string index = "none";  // or "whole", "faulty", or "unchecked": the shard is damaged
    uint64_t samples = 0;
    uint64_t fields = 0;
    uint64_t payload = 0;  // bytes of all fields
    uint64_t fault_count = 0;
    std::vector<ShardFault> faults;  // the first ones
    std::vector<std::pair<std::string, uint64_t>> counters;

    void add(ShardFault fault);
};

// Checks shards, one after another or several at a time. Any number of threads.
class ShardCheck {
  public:
    struct Wanted {
        std::string decode_as;      // as the option "decode"; empty: fields are not decoded
        size_t decode_threads = 1;  // of each shard
        size_t read_threads = 0;    // as the option "threads"
    };
    // `progress` is called with samples and bytes, by any thread.
    ShardCheck(const LibraryOptions& options, Wanted wanted,
               std::function<void(uint64_t, uint64_t)> progress)
        : options_(options), wanted_(std::move(wanted)), progress_(std::move(progress)) {}

    // What is wrong with the shard is in the verdict. Throws Failure when the run was
    // interrupted, and when it is told nonsense.
    ShardVerdict check(const std::string& url);

  private:
    Options new_options();
    void check_samples(ShardVerdict& verdict, uint64_t& digest);
    void decode(const shf_block* block, const std::vector<Options>& decoders,
                ShardVerdict& verdict) const;
    void check_other_members(ShardVerdict& verdict);
    void check_index(ShardVerdict& verdict, uint64_t digest);

    const LibraryOptions& options_;
    std::mutex options_mutex_;  // an options object serves one thread at a time
    const Wanted wanted_;
    const std::function<void(uint64_t, uint64_t)> progress_;
};

}  // namespace cli
