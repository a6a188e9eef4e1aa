#include "index/index_store.h"

#include "core/error.h"
#include "core/log.h"
#include "core/options.h"
#include "index/tar_indexer.h"
#include "io/file.h"
#include "io/source.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <vector>

namespace shf {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".sfidx";

// The folder for files that can be made again (XDG Base Directory Specification), or nothing.
fs::path cache_folder() {
    const char* base = std::getenv("XDG_CACHE_HOME");
    if (base && base[0] == '/') return fs::path(base) / "shardfeed";
    const char* home = std::getenv("HOME");
    return home && home[0] == '/' ? fs::path(home) / ".cache" / "shardfeed" : fs::path();
}

// A name in a folder that is shared by shards of many folders.
fs::path name_for(const fs::path& shard) {
    const std::string whole = fs::absolute(shard).lexically_normal().string();
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(whole.data(), whole.size())));
    return shard.filename().string() + "." + hash + std::string(suffix);
}

// Where the index of a shard may lie, the best place first.
std::vector<fs::path> places_for(const std::string& url, const Options& options) {
    const fs::path shard = url.starts_with("file:") ? path_of_file_url(url) : url;
    if (!options.index_dir.empty()) return {fs::path(options.index_dir) / name_for(shard)};
    std::vector<fs::path> places{fs::path(shard.string() + std::string(suffix))};
    if (const fs::path cache = cache_folder(); !cache.empty())
        places.push_back(cache / name_for(shard));
    return places;
}

// The index in a file; nothing when there is no such file. Throws Error when it is damaged.
std::shared_ptr<const ShardIndex> load(const fs::path& path) {
    const Cancel never;
    std::unique_ptr<Source> source;
    try {
        source = file_source(path.string(), never);
    } catch (const Error& error) {
        if (error.fault().os_error == ENOENT || error.fault().os_error == ENOTDIR) return nullptr;
        throw;
    }
    const auto size = static_cast<size_t>(source->seekable() ? source->size().value_or(0) : 0);
    const StorageRef storage = unpooled(size);
    if (source->read(0, {storage->data, size}) < size)
        throw Error(SHF_E_TRUNCATED, "the index file became shorter while it was read");
    return std::make_shared<const ShardIndex>(storage, size);
}

// Saves an index in the first place that takes it. Returns where, or nothing with the last error.
std::optional<fs::path> save(const ShardIndex& index, const std::vector<fs::path>& places,
                             int& error) {
    for (const fs::path& place : places) {
        // The folder of a shard is there; ours are made when they are first needed.
        std::error_code ignored;
        fs::create_directories(place.parent_path(), ignored);
        error = publish(place, index.file());
        if (error == 0) return place;
    }
    return std::nullopt;
}

// What is wrong with the index of a shard, when something is.
std::optional<Error> fault_of(const ShardIndex& index, const ShardIdentity& shard) {
    if (index.identity() == shard) return std::nullopt;
    return Error(SHF_E_CHANGED, "the index is of another version of the shard",
                 "index=auto makes it anew");
}

}  // namespace

int publish(const fs::path& path, std::span<const uint8_t> bytes) {
    std::random_device random;
    const fs::path part =
        path.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(random()) + ".part";
    const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    int error = 0;
    while (!bytes.empty() && error == 0) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written >= 0)
            bytes = bytes.subspan(static_cast<size_t>(written));
        else if (errno != EINTR)
            error = errno;
    }
    if (::close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && ::rename(part.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) ::unlink(part.c_str());
    return error;
}

std::shared_ptr<const ShardIndex> open_index(const std::string& url, Source& source,
                                             const Options& options, const Cancel& cancel) {
    const std::string shown = redact(url);
    const auto places = places_for(url, options);
    if (options.index == IndexUse::automatic || options.index == IndexUse::require) {
        const ShardIdentity identity = identify(source);
        std::optional<Error> last;
        for (const fs::path& place : places) {
            std::optional<Error> fault;
            try {
                if (auto index = load(place)) {
                    fault = fault_of(*index, identity);
                    if (!fault) return index;
                }
            } catch (const Error& error) {
                fault = error;
            }
            if (!fault) continue;
            log(options, SHF_LOG_WARNING,
                shown + ": index " + escape(place.string()) + " is not used: " + fault->what());
            last = fault;
        }
        if (options.index == IndexUse::require && last) throw Error(*last);
        if (options.index == IndexUse::require)
            throw Error(SHF_E_NOT_FOUND, "the shard has no index",
                        "index=auto makes one in " + escape(places[0].parent_path().string()));
    }
    log(options, SHF_LOG_INFO, shown + ": making its index");
    auto index = index_tar(source, options, cancel);
    if (options.index != IndexUse::memory) {
        int error = 0;
        const auto place = save(*index, places, error);
        log(options, SHF_LOG_INFO,
            shown + (place ? ": index saved as " + escape(place->string())
                           : ": the index could not be saved: " +
                                 std::error_code(error, std::generic_category()).message()));
    }
    return index;
}

std::string save_index(const std::string& url, const ShardIndex& index, const Options& options) {
    int error = 0;
    if (save(index, places_for(url, options), error)) return {};
    return "the index could not be saved: " +
           std::error_code(error, std::generic_category()).message();
}

std::string store_index(const std::string& url, const ShardIndex& index, const Options& options) {
    int error = 0;
    const auto place = save(index, places_for(url, options), error);
    if (!place) throw Error::system("saving the index", error);
    return place->string();
}

std::string build_index(const std::string& url, const Options& options, const Cancel& cancel) {
    const auto source = open_source(url, options, cancel);
    if (!source->seekable() || !source->size())
        throw Error(SHF_E_USAGE, "only files have an index", "copy the shard to a disk");
    return store_index(url, *index_tar(*source, options, cancel), options);
}

}  // namespace shf
