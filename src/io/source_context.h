// What the opening and reading of shards is done with.
#pragma once

#include <atomic>
#include <cstdint>

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
    // Memory of ranges that are fetched before they are wanted, now.
    std::atomic<uint64_t> ahead_bytes{0};
};

// Counter `stat` (SHF_STAT_*); 0 for those that are not about sources.
uint64_t source_stat(const SourceUse& use, int32_t stat) noexcept;

// All must outlive what is opened with it.
struct SourceContext {
    const Options& options;
    const Cancel& cancel;  // ends any wait
    SourceUse& use;
};

}  // namespace shf
