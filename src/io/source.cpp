#include "io/source.h"

#include "core/log.h"
#include "core/opening.h"
#include "io/source_context.h"

#include <shardfeed.h>

namespace shf {

void warn_once(SourceTrouble trouble, const std::string& message, const SourceContext& context) {
    const auto bit = static_cast<uint32_t>(trouble);
    if ((context.use.warned.fetch_or(bit) & bit) != 0) return;
    if (context.use.warn)
        context.use.warn(message);
    else if (Opening::active() || LogQueue::active())  // else no callback may run
        log(context.options, SHF_LOG_WARNING, message);
}

uint64_t source_stat(const SourceUse& use, int32_t stat) noexcept {
    switch (stat) {
        case SHF_STAT_REQUESTS: return use.requests;
        case SHF_STAT_RETRIES: return use.retries;
        case SHF_STAT_NETWORK_BYTES: return use.network_bytes;
        case SHF_STAT_DNS_NS: return use.dns_ns;
        case SHF_STAT_CONNECT_NS: return use.connect_ns;
        case SHF_STAT_FIRST_BYTE_NS: return use.first_byte_ns;
        case SHF_STAT_CACHE_BYTES: return use.cache_bytes;
        case SHF_STAT_CACHE_FAULTS: return use.cache_faults;
        case SHF_STAT_STALE_SHARDS: return use.stale;
        case SHF_STAT_VERIFIED_SHARDS: return use.verified;
        default: return 0;
    }
}

size_t Source::read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) {
    size_t done = 0;
    for (const std::span<uint8_t> part : parts) {
        const size_t size = part.empty() ? 0 : read(offset + done, part);
        done += size;
        if (size < part.size()) break;
    }
    return done;
}

}  // namespace shf
