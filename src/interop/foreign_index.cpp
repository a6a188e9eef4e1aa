#include "interop/foreign_index.h"

#include "core/error.h"
#include "core/options.h"
#include "index/index_store.h"
#include "index/tar_indexer.h"
#include "interop/dali_index.h"
#include "interop/energon_index.h"
#include "interop/wids_index.h"
#include "io/file.h"
#include "io/sources.h"
#include "sample/entry_groups.h"
#include "sample/shard_format.h"
#include "url/in_shard.h"
#include "url/scheme.h"
#include "zip/zip_directory.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace shf {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t largest_foreign = uint64_t{1} << 30;

// Runs `action`; its errors say which index file.
template <typename Do>
auto with_file(const std::string& path, Do action) {
    try {
        return action();
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.cause = "index file \"" + escape(path) + "\": " + fault.cause;
        throw Error(std::move(fault));
    }
}

// A shard, and what its index says.
struct Shard {
    std::unique_ptr<Source> source = {};
    std::shared_ptr<const ShardIndex> index = {};  // NULL: a ZIP file
    std::optional<TarFiles> files = {};            // of a tar
    uint64_t samples = 0;
};

Shard walk(const std::string& url, const Options& options, const Cancel& cancel) {
    Shard shard;
    shard.source = Sources(options, cancel).open(url);
    Source& source = *shard.source;
    if (!source.seekable() || !source.size())
        throw Error(SHF_E_USAGE, "only files have an index", "copy the shard to a disk");
    const ShardFormat format = shard_format(source, url, options);
    if (format == ShardFormat::other)
        throw Error(SHF_E_UNSUPPORTED,
                    "the other tools read tar and ZIP files, and this is neither",
                    "write its samples as a tar");
    if (format == ShardFormat::zip) {
        const ZipDirectory directory(source, options);
        shard.samples = entry_groups(directory, options).size();
        source.verify();
    } else {
        if (format == ShardFormat::compressed_tar)
            throw Error(SHF_E_UNSUPPORTED, "the other tools read tar files that are not compressed",
                        "decompress it");
        shard.index = index_tar(source, options, cancel);
        shard.samples = shard.index->samples();
        shard.files.emplace(source, options, cancel);
    }
    return shard;
}

// The same for a tool that reads tar files alone.
Shard walk_tar(const std::string& url, const Options& options, const Cancel& cancel) {
    Shard shard = walk(url, options, cancel);
    if (!shard.files)
        throw Error(SHF_E_UNSUPPORTED, "DALI and Energon read tar files, and this is a ZIP file",
                    "write its samples as a tar");
    return shard;
}

// How many samples wids sees.
uint64_t wids_samples(const Shard& shard) {
    return shard.files ? FileGroups(*shard.files, split_wids_name).size() : shard.samples;
}

fs::path absolute_path(const std::string& url) {
    return fs::absolute(path_of(url)).lexically_normal();
}

fs::path folder_of(const std::string& path) {
    return fs::absolute(path).lexically_normal().parent_path();
}

// The index takes the place of a file of that name, which must not be a shard.
void keep_shard(const std::string& url, const std::string& path) {
    std::error_code none;  // a file that is not there yet is no shard
    if (fs::equivalent(absolute_path(url), path, none))
        throw Error(SHF_E_USAGE, "the index would take the place of the shard",
                    "give the index another name");
}

std::string one_url(std::span<const char* const> urls, const Options& options,
                    const Cancel& cancel) {
    const ShardList list = Sources(options, cancel).list(urls);
    if (list.size() != 1)
        throw Error(
            SHF_E_USAGE,
            "an index of DALI or Energon is of one shard, not of " + std::to_string(list.size()),
            "make one index for each");
    return list.at(0);
}

std::string wids_text(std::span<const char* const> urls, const std::string& path,
                      const Options& options, const Cancel& cancel) {
    const ShardList list = Sources(options, cancel).list(urls);
    if (list.size() == 0)
        throw Error(SHF_E_USAGE, "an index of wids needs a shard", "give at least one URL");
    std::vector<WidsShard> shards;
    for (uint64_t i = 0; i < list.size(); ++i) {
        const std::string url = list.at(i);
        in_shard(url, [&] {
            const Shard shard = walk(url, options, cancel);
            keep_shard(url, path);
            shards.push_back({.url = wids_url(absolute_path(url), folder_of(path)),
                              .samples = wids_samples(shard),
                              .size = shard.source->size()});
        });
    }
    return wids_index(shards);
}

std::string tar_text(const std::string& url, IndexFormat format, const std::string& path,
                     const Options& options, const Cancel& cancel) {
    return in_shard(url, [&] {
        const Shard shard = walk_tar(url, options, cancel);
        keep_shard(url, path);
        return format == IndexFormat::energon
                   ? energon_index(*shard.files)
                   : dali_index(*shard.files, static_cast<DaliVersion>(format));
    });
}

void import_wids(const std::string& text, const std::string& path, const Options& options,
                 const Cancel& cancel) {
    const auto shards = with_file(path, [&] { return read_wids_index(text); });
    // Nothing is opened before all names are known to be files.
    std::vector<std::string> urls;
    for (const WidsShard& shard : shards)
        urls.push_back(
            with_file(path, [&] { return wids_path(shard.url, folder_of(path)).string(); }));
    for (size_t i = 0; i < shards.size(); ++i) {
        in_shard(urls[i], [&] {
            const Shard shard = walk(urls[i], options, cancel);
            with_file(path, [&] {
                const auto differs = [i](const char* what, uint64_t claimed, uint64_t truth) {
                    return Error(SHF_E_CHANGED,
                                 "shard " + std::to_string(i) + " of the list has " + what + " " +
                                     std::to_string(claimed) + ", and " + std::to_string(truth) +
                                     " in truth",
                                 "make the index again from these shards");
                };
                const uint64_t size = *shard.source->size();
                if (shards[i].size.value_or(size) != size)
                    throw differs("filesize", *shards[i].size, size);
                if (shards[i].samples != shard.samples && shards[i].samples != wids_samples(shard))
                    throw differs("nsamples", shards[i].samples, shard.samples);
            });
            if (shard.index) store_index(urls[i], *shard.index, options);
        });
    }
}

}  // namespace

void export_index(std::span<const char* const> urls, IndexFormat format, const std::string& path,
                  const Options& options) {
    const Cancel never;
    const std::string text = format == IndexFormat::wids ? wids_text(urls, path, options, never)
                                                         : tar_text(one_url(urls, options, never),
                                                                    format, path, options, never);
    const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (const int error = publish(path, bytes); error != 0)
        throw Error::system("writing the index file \"" + escape(path) + "\"", error);
}

void import_index(std::span<const char* const> urls, IndexFormat format, const std::string& path,
                  const Options& options) {
    const Cancel never;
    std::string url;
    if (format != IndexFormat::wids) url = one_url(urls, options, never);
    const std::string text = with_file(
        path, [&] { return read_whole_file(path, largest_foreign, never, options.pipe_timeout); });
    if (format == IndexFormat::wids) return import_wids(text, path, options, never);
    in_shard(url, [&] {
        const Shard shard = walk_tar(url, options, never);
        with_file(path, [&] {
            if (format == IndexFormat::energon)
                check_energon_index(text, *shard.files);
            else
                check_dali_index(text, *shard.files);
        });
        store_index(url, *shard.index, options);
    });
}

}  // namespace shf
