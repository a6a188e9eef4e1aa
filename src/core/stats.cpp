#include "core/stats.h"

#include "core/error_codes.h"

#include <shardfeed.h>

#include <iterator>

namespace shf {

namespace {

constexpr const char* counter = "counter";
constexpr const char* gauge = "gauge";

struct Counter {
    const char* name;
    const char* kind;
    const char* unit;
    const char* help;
};

// In the order of the enumerators SHF_STAT_*.
constexpr Counter counters[] = {
    {"samples", counter, "samples", "samples delivered, in batches too"},
    {"bytes", counter, "bytes", "payload bytes delivered"},
    {"shards", counter, "shards", "shards read to their proven end"},
    {"skipped_samples", counter, "samples", "samples dropped under on_error=skip_sample"},
    {"skipped_shards", counter, "shards",
     "shards cut short under on_error=skip_sample or skip_shard"},
    {"ignored_members", counter, "members", "members without key, and names between __ and __"},
    {"directories", counter, "members", "directory members"},
    {"links", counter, "members", "hard and symbolic links, skipped"},
    {"specials", counter, "members", "devices, FIFOs and labels, skipped"},
    {"sparse", counter, "members", "sparse members, unsupported"},
    {"unknown_types", counter, "members", "members of unknown type, skipped"},
    {"size_disagreements", counter, "members",
     "members whose pax size is not the header's; pax was taken"},
    {"missing_end_markers", counter, "shards", "shards accepted under end_marker=optional"},
    {"trailing", counter, "shards", "shards with junk after their end, accepted"},
    {"suffix_mismatches", counter, "shards", "shards whose suffix and compression disagree"},
    {"empty_shards", counter, "shards", "shards accepted under allow_empty"},
    {"memory", gauge, "bytes", "payload memory held and not handed out"},
    {"memory_peak", gauge, "bytes", "highest value of memory"},
    {"consumer_wait_ns", counter, "ns", "time the consumer spent waiting for bytes"},
    {"reader_wait_ns", counter, "ns", "time readers spent waiting for the consumer or memory"},
    {"epoch_samples", gauge, "samples",
     "samples of this consumer in an epoch under epoch_samples or even; else 0"},
    {"passed_over", counter, "samples", "samples skipped under missing=skip"},
    {"filtered_samples", counter, "samples", "samples skipped by fields, select_keys or slice"},
    {"unverified_samples", counter, "samples",
     "samples delivered before their checksum, which then failed"},
    {"requests", counter, "requests", "requests to servers, with those that failed"},
    {"retries", counter, "requests", "requests that were made again after a fault"},
    {"network_bytes", counter, "bytes", "bytes in the bodies of servers' answers"},
    {"dns_ns", counter, "ns", "time in which requests looked up names"},
    {"connect_ns", counter, "ns", "time in which requests connected, with TLS"},
    {"first_byte_ns", counter, "ns", "time between requests and the first bytes of their answers"},
    {"cache_bytes", counter, "bytes", "bytes read from the cache"},
    {"cache_faults", counter, "blocks", "damaged blocks of the cache, dropped and fetched again"},
    {"stale_shards", counter, "shards", "shards opened from the cache alone, under stale_ok"},
    {"verified_shards", counter, "shards",
     "shards read from start to end whose bytes have the checksum that their server gives"},
};

// By error class, in the order of SHF_E_*.
constexpr const char* skips[] = {
    "skips_format",    "skips_truncated",     "skips_integrity",
    "skips_limit",     "skips_unsupported",   "skips_ambiguous",
    "skips_changed",   "skips_net_transient", "skips_net_permanent",
    "skips_throttled", "skips_auth",          "skips_tls",
    "skips_io",        "skips_nospace",       "skips_nomem",
    "skips_cancelled", "skips_timeout",       "skips_child",
};

static_assert(std::size(counters) == SHF_STAT_VERIFIED_SHARDS + 1);
static_assert(std::size(skips) == -SHF_E_CHILD);

}  // namespace

const char* describe_stat(int32_t stat, int32_t what) noexcept {
    Counter row{};
    const int64_t code = int64_t{stat} - SHF_STAT_SKIPS_BY_CLASS;  // without its sign
    if (stat >= 0 && stat < static_cast<int32_t>(std::size(counters)))
        row = counters[stat];
    else if (code >= 1 && code <= static_cast<int64_t>(std::size(skips)))
        row = {skips[code - 1], counter, "skips", text_of_code(static_cast<int32_t>(-code))};
    switch (what) {
        case SHF_COUNTER_NAME: return row.name;
        case SHF_COUNTER_KIND: return row.kind;
        case SHF_COUNTER_UNIT: return row.unit;
        case SHF_COUNTER_HELP: return row.help;
        default: return nullptr;
    }
}

}  // namespace shf
