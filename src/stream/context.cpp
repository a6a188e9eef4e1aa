#include "stream/context.h"

#include "core/error_codes.h"
#include "core/log.h"

#include <utility>

namespace shf {

StreamContext::~StreamContext() {
    pool->close();
    pool->drop();
}

uint64_t StreamContext::stat(int32_t stat) const {
    if (stat == SHF_STAT_MEMORY) return pool->held();
    if (stat == SHF_STAT_MEMORY_PEAK) return pool->peak();
    return stats.get(stat) + source_stat(source_use, stat);
}

void StreamContext::fault(Fault fault, bool whole_shard) {
    if (fault.unverified > 0) stats.add(SHF_STAT_UNVERIFIED_SAMPLES, fault.unverified);
    if (options.on_error == OnError::raise || !skippable(fault.code)) throw Error(std::move(fault));
    stats.add(whole_shard ? SHF_STAT_SKIPPED_SHARDS : SHF_STAT_SKIPPED_SAMPLES, 1);
    stats.add(SHF_STAT_SKIPS_BY_CLASS - fault.code, 1);
    if (forward_skip) return forward_skip(std::move(fault), whole_shard);
    const uint64_t samples = stats.get(SHF_STAT_SKIPPED_SAMPLES);
    const uint64_t shards = stats.get(SHF_STAT_SKIPPED_SHARDS);
    if (samples + shards > options.max_skips) {
        fault.cause = plural(samples, "sample") + " and " + plural(shards, "shard") +
                      " were skipped, more than max_skips=" + std::to_string(options.max_skips) +
                      "; the last one: " + name_of_code(fault.code) + ": " + fault.cause;
        fault.help = "mend the shards, or raise max_skips";
        fault.code = SHF_E_LIMIT;
        throw Error(std::move(fault));
    }
    Notice notice{
        .warning = (whole_shard ? "skipped the rest of a shard: " : "skipped a sample: ") +
                   std::string(name_of_code(fault.code)) + ": " + fault.text(),
        .skipped = std::nullopt,
        .whole_shard = whole_shard};
    if (options.on_skip) notice.skipped = std::move(fault);
    note(std::move(notice));
}

void StreamContext::warn(std::string message) {
    note({.warning = std::move(message), .skipped = std::nullopt});
}

void StreamContext::note(Notice notice) {
    const std::lock_guard lock(mutex_);
    notices_.push_back(std::move(notice));
    any_notice_.store(true, std::memory_order_release);
}

void StreamContext::pass_on_notices() {
    // Asked after every sample: the lock would cost as much as the sample.
    if (!any_notice_.load(std::memory_order_acquire)) return;
    std::vector<Notice> notices;
    {
        const std::lock_guard lock(mutex_);
        notices.swap(notices_);
        any_notice_.store(false, std::memory_order_relaxed);
    }
    for (const Notice& notice : notices) pass_on(notice);
}

void StreamContext::pass_on(const Notice& notice) const {
    log(options, SHF_LOG_WARNING, notice.warning);
    if (!notice.skipped) return;
    const Fault& fault = *notice.skipped;
    const auto bytes = [](const std::string& text) {
        return shf_bytes{reinterpret_cast<const uint8_t*>(text.c_str()), text.size()};
    };
    shf_error error;
    write_error(&error, fault);
    const shf_skip skip{.error = &error,
                        .url = bytes(fault.shard),
                        .key = bytes(fault.key),
                        .whole_shard = notice.whole_shard ? 1 : 0};
    options.on_skip(options.on_skip_ctx, &skip);
}

void StreamContext::count_wait(Clock::time_point start) {
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
    stats.add(SHF_STAT_CONSUMER_WAIT_NS, static_cast<uint64_t>(time.count()));
}

}  // namespace shf
