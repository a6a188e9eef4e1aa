// What the opening and reading of shards is done with.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace shf {

class Cancel;
struct Options;

// What the sources of one stream, dataset or archive have used so far. Any thread.
struct SourceUse {
    std::atomic<uint64_t> requests{0};       // to servers, with those that failed
    std::atomic<uint64_t> retries{0};        // requests that were made again after a fault
    std::atomic<uint64_t> network_bytes{0};  // of bodies of answers
    std::atomic<uint64_t> dns_ns{0};         // time in looking up names, of all requests
    std::atomic<uint64_t> connect_ns{0};     // in connecting, with TLS
    std::atomic<uint64_t> first_byte_ns{0};  // from the request to the first byte of its answer
    std::atomic<uint64_t> cache_bytes{0};    // that were read from the cache
    std::atomic<uint64_t> cache_faults{0};   // blocks of the cache that were damaged, and dropped
    std::atomic<uint64_t> stale{0};          // shards opened from the cache alone: stale_ok
    std::atomic<uint64_t> verified{0};       // shards whose bytes have the server's checksum
    // Takes a warning for the log; empty: it is logged where something is opened. Each kind of
    // trouble, a bit of `warned`, is reported once. Set before anything is opened.
    std::function<void(std::string)> warn;
    std::atomic<uint32_t> warned{0};
    // Memory of ranges that are fetched before they are wanted, now.
    std::atomic<uint64_t> ahead_bytes{0};
    // Whether several connections were faster than one when somebody last looked: the next shard
    // begins with several.
    std::atomic<bool> slow_network{false};
    // Which digests came from servers that were asked for them: bits of kinds, one that says that
    // any answer came, one that some could be compared, and how many questions brought nothing.
    std::atomic<uint32_t> digest_kinds{0};
};

// Counter `stat` (SHF_STAT_*); 0 for those that are not about sources.
uint64_t source_stat(const SourceUse& use, int32_t stat) noexcept;

// All must outlive what is opened with it.
struct SourceContext {
    const Options& options;
    const Cancel& cancel;  // ends any wait
    SourceUse& use;
    // Only the version and the size are wanted when something is opened: a cache has the first
    // bytes, or somebody else fetches them now. Reading works as ever.
    bool brief = false;
};

// Faults after which a reader continues: bits of SourceUse::warned.
enum class SourceTrouble : uint32_t {
    cache_folder = 1,   // it cannot be used
    cache_version = 2,  // a server names no version
    cache_damage = 4,
    cache_stale = 8,  // read without asking the server
    retry = 16        // a request failed, and is made again
};
// Logs the first of each kind. Any thread.
void warn_once(SourceTrouble trouble, const std::string& message, const SourceContext& context);

}  // namespace shf
