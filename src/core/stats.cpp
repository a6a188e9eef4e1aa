#include "core/stats.h"

#include <shardfeed.h>

#include <iterator>

namespace shf {

const char* stat_name(int32_t stat) noexcept {
    // In the order of the enumerators SHF_STAT_*.
    static constexpr const char* names[] = {
        "samples",
        "bytes",
        "shards",
        "skipped_samples",
        "skipped_shards",
        "ignored_members",
        "directories",
        "links",
        "specials",
        "sparse",
        "unknown_types",
        "size_disagreements",
        "missing_end_markers",
        "trailing",
        "suffix_mismatches",
        "empty_shards",
        "memory",
        "memory_peak",
        "consumer_wait_ns",
        "reader_wait_ns",
        "epoch_samples",
        "passed_over",
        "filtered_samples",
        "unverified_samples",
    };
    // By error class, in the order of SHF_E_*.
    static constexpr const char* skips[] = {
        "skips_format",    "skips_truncated",     "skips_integrity",
        "skips_limit",     "skips_unsupported",   "skips_ambiguous",
        "skips_changed",   "skips_net_transient", "skips_net_permanent",
        "skips_throttled", "skips_auth",          "skips_tls",
        "skips_io",        "skips_nospace",       "skips_nomem",
        "skips_cancelled", "skips_timeout",       "skips_child",
    };
    static_assert(std::size(names) == SHF_STAT_UNVERIFIED_SAMPLES + 1);
    static_assert(std::size(skips) == -SHF_E_CHILD);
    if (stat < 0) return nullptr;
    if (stat < static_cast<int32_t>(std::size(names))) return names[stat];
    const int32_t skip = stat - SHF_STAT_SKIPS_BY_CLASS - 1;
    if (skip >= 0 && skip < static_cast<int32_t>(std::size(skips))) return skips[skip];
    return nullptr;
}

}  // namespace shf
