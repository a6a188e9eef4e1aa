// What is in a cache: for the command, and for programs that look after theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shf {

class Cancel;
struct Options;

// One version of one shard.
struct CacheRow {
    std::string url;  // without secrets; empty where nothing says what it is
    std::string version;
    uint64_t size = 0;    // of the shard
    uint64_t data = 0;    // bytes of it that are in the cache
    uint64_t disk = 0;    // bytes of its files
    uint64_t age_ns = 0;  // since it was used last
    uint64_t faults = 0;  // blocks that were damaged, and removed
};

// Which of them.
struct CacheChoice {
    std::vector<std::string> urls;  // as shards are opened; one that ends in / means all below it;
                                    // empty: all
    uint64_t older_than_ns = 0;     // not used for so long
};

// All functions look into the folder options.cache or, when that is empty, $SHARDFEED_CACHE. They
// throw Error: USAGE, NOT_FOUND (there is no cache there), IO, CANCELLED.

std::vector<CacheRow> list_cache(const Options& options, const CacheChoice& choice);
// Reads all blocks, and removes those that are damaged.
std::vector<CacheRow> verify_cache(const Options& options, const CacheChoice& choice);
// Removes them, and returns what was removed. With no URL index files too.
std::vector<CacheRow> clear_cache(const Options& options, const CacheChoice& choice);

}  // namespace shf
