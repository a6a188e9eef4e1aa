#include "index/shard_counts.h"

#include "core/error.h"
#include "core/options.h"
#include "index/index_store.h"
#include "io/each_shard.h"
#include "io/sources.h"
#include "libarchive/libarchive_directory.h"
#include "sample/entry_groups.h"
#include "sample/name.h"
#include "sample/shard_format.h"
#include "zip/zip_directory.h"

#include <algorithm>
#include <string>

namespace shf {

namespace {

// What to do where it cannot be known.
std::string without_counts(const Options& options) {
    return options.by_index ? "leave out by_index" : "leave out even and set epoch_samples";
}

uint64_t count_in_tar(const ShardIndex& index, const SampleFilter& filter) {
    if (filter.all()) return index.samples();
    uint64_t count = 0;
    for (size_t i = 0; i < index.samples(); ++i)
        if (filter.wants(i, std::string(index.key(i)), *index.schema(i))) ++count;
    return count;
}

template <typename Directory>
uint64_t count_in_directory(const Directory& directory, const EntryGroups& groups,
                            const SampleFilter& filter) {
    if (filter.all()) return groups.size();
    uint64_t count = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
        const MemberName name = split_name(directory.name(groups[i][0]));
        const Schema& schema = *groups.schemas()[groups.schema_number(i)];
        if (filter.wants(i, std::string(name.key), schema)) ++count;
    }
    return count;
}

uint64_t count_in(const std::string& url, const Options& options, const SampleFilter& filter,
                  const Cancel& cancel) {
    const auto source = Sources(options, cancel).open(url);
    if (!source->seekable() || !source->size())
        throw Error(SHF_E_USAGE, "how many samples it has cannot be known before it is read",
                    without_counts(options));
    const ShardFormat format = shard_format(*source, url, options);
    if (format == ShardFormat::zip) {
        const ZipDirectory directory(*source, options);
        return count_in_directory(directory, entry_groups(directory, options), filter);
    }
    if (format == ShardFormat::other) {
        const LibarchiveDirectory directory(*source, options, cancel);
        return count_in_directory(directory, entry_groups(directory, options), filter);
    }
    try {
        return count_in_tar(*open_index(url, *source, options, cancel), filter);
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.help =
            "read the shards once with the option write_index=true, or open them as a dataset, "
            "which makes it; or " +
            without_counts(options);
        throw Error(std::move(fault));
    }
}

}  // namespace

std::vector<uint32_t> count_samples(const ShardList& shards, const Options& given,
                                    const SampleFilter& filter) {
    Options options = given;
    options.index = IndexUse::require;  // opening a stream reads no shard
    std::vector<uint32_t> counts(static_cast<size_t>(shards.size()));
    Cancel cancel;  // the stream has no handle yet by which it could be cancelled
    for_each_shard(shards, options, cancel, [&](uint64_t number, const std::string& url) {
        const uint64_t count = count_in(url, options, filter, cancel);
        counts[number] = static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
    });
    return counts;
}

}  // namespace shf
