// shf_plan_*.
#include "api/handles.h"
#include "index/index_store.h"
#include "order/plan_report.h"
#include "sample/sample_filter.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

using shf::Error;
using shf::guard;

struct shf_plan {
    shf::PlanReport report;
};

namespace {

// Why the samples of a shard are not those that are delivered; empty: they are.
std::string unknown_after_filters(const shf::Options& options) {
    return shf::SampleFilter(options).all() ? "" : "fields, select_keys or slice leave some out";
}

shf::KnownShards known(const shf::ShardList& list, const shf::Options& options) {
    shf::KnownShards shards;
    shards.count = list.size();
    shards.unknown = unknown_after_filters(options);
    if (!shards.unknown.empty()) return shards;
    auto sizes = shf::indexed_sizes(list, options);
    shards.unknown = std::move(sizes.unknown);
    shards.needs_index = sizes.needs_index;
    if (!shards.unknown.empty()) return shards;
    shards.samples = std::move(sizes.samples);
    shards.bytes = std::move(sizes.bytes);
    return shards;
}

}  // namespace

extern "C" {

int32_t shf_plan_make(shf_plan** out, const char* const* urls, size_t url_count,
                      const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_plan_make: out is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        const shf::ShardList list(shf::checked_urls(urls, url_count), values);
        *out = new shf_plan{shf::PlanReport(values, known(list, values))};
        return SHF_OK;
    });
}

void shf_plan_text(const shf_plan* plan, shf_bytes* out) {
    if (out) *out = plan ? shf::borrowed(plan->report.text()) : shf_bytes{nullptr, 0};
}

int32_t shf_plan_warning(const shf_plan* plan, size_t index, shf_bytes* out) {
    if (out) *out = shf_bytes{nullptr, 0};
    if (!plan || !out) return SHF_E_USAGE;
    const auto warnings = plan->report.warnings();
    if (index >= warnings.size()) return SHF_E_NOT_FOUND;
    *out = shf::borrowed(warnings[index]);
    return SHF_OK;
}

uint64_t shf_plan_consumer_count(const shf_plan* plan) {
    return plan ? plan->report.consumers() : 0;
}

uint64_t shf_plan_info(const shf_plan* plan, uint64_t consumer, int32_t what) {
    if (consumer >= shf_plan_consumer_count(plan)) return UINT64_MAX;
    const auto share = plan->report.share(consumer);
    switch (what) {
        case SHF_PLAN_RANK: return share.rank;
        case SHF_PLAN_WORKER: return share.worker;
        case SHF_PLAN_LANES: return share.lanes;
        case SHF_PLAN_SHARDS: return share.shards;
        case SHF_PLAN_SAMPLES: return share.samples;
        case SHF_PLAN_BYTES: return share.bytes;
        default: return UINT64_MAX;
    }
}

uint64_t shf_plan_shard_count(const shf_plan* plan) {
    return plan ? plan->report.shards().count : 0;
}

uint64_t shf_plan_shard_info(const shf_plan* plan, uint64_t shard, int32_t what) {
    if (shard >= shf_plan_shard_count(plan)) return UINT64_MAX;
    const shf::KnownShards& known = plan->report.shards();
    if (known.samples.empty()) return UINT64_MAX;
    switch (what) {
        case SHF_PLAN_SHARD_SAMPLES: return known.samples[shard];
        case SHF_PLAN_SHARD_BYTES: return known.bytes.empty() ? UINT64_MAX : known.bytes[shard];
        default: return UINT64_MAX;
    }
}

int32_t shf_plan_simulate(shf_plan** out, const uint64_t* samples, const uint64_t* bytes,
                          size_t shard_count, const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out || (!samples && shard_count > 0))
            throw Error(SHF_E_USAGE, "shf_plan_simulate: out or samples is NULL");
        if (shard_count > UINT32_MAX)
            throw Error(SHF_E_USAGE, shf::plural(shard_count, "shard"),
                        "at most 4294967295 can be planned");
        const std::span<const uint64_t> counts(samples, shard_count);
        const auto large = std::find_if(counts.begin(), counts.end(),
                                        [](uint64_t count) { return count > UINT32_MAX; });
        if (large != counts.end())
            throw Error(SHF_E_USAGE,
                        "shard " + std::to_string(large - counts.begin()) + " has " +
                            shf::plural(*large, "sample"),
                        "no shard has more than 4294967295");
        const shf::Options values = shf::values_of(options);
        shf::KnownShards shards{.count = shard_count,
                                .samples = {},
                                .bytes = {},
                                .unknown = unknown_after_filters(values)};
        if (shards.unknown.empty()) {
            shards.samples.assign(counts.begin(), counts.end());
            if (bytes) shards.bytes.assign(bytes, bytes + shard_count);
        }
        *out = new shf_plan{shf::PlanReport(values, std::move(shards))};
        return SHF_OK;
    });
}

int32_t shf_plan_reads(const shf_plan* plan, uint64_t consumer, uint64_t* reads, size_t room,
                       size_t* count, shf_error* error) {
    if (count) *count = 0;
    return guard(error, [&] {
        if (!plan || !count || (!reads && room > 0))
            throw Error(SHF_E_USAGE, "shf_plan_reads: plan, count or reads is NULL");
        if (consumer >= plan->report.consumers())
            throw Error(SHF_E_USAGE, "consumer " + std::to_string(consumer) + " of a plan of " +
                                         std::to_string(plan->report.consumers()));
        const std::vector<shf::ShardRead> made = plan->report.reads(consumer);
        for (size_t i = 0; i < std::min(room, made.size()); ++i) {
            const shf::ShardRead& read = made[i];
            const uint64_t numbers[] = {read.shard, read.samples, read.first, read.last};
            std::copy(std::begin(numbers), std::end(numbers), reads + i * std::size(numbers));
        }
        *count = made.size();
        return SHF_OK;
    });
}

void shf_plan_free(shf_plan* plan) {
    delete plan;
}
}
