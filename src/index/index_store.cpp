#include "index/index_store.h"

#include "cache/cache_bytes.h"
#include "cache/cache_folder.h"
#include "cache/cache_url.h"
#include "core/error.h"
#include "core/log.h"
#include "core/opening.h"
#include "core/options.h"
#include "index/tar_indexer.h"
#include "io/descriptor.h"
#include "io/sources.h"
#include "zip/zip_directory.h"

#define XXH_INLINE_ALL
#include "sample/shard_format.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <xxhash.h>

#include <sys/stat.h>
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
#include <utility>
#include <vector>

namespace shf {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".sfidx";
// The body has at most 2^32 - 1 bytes; the rest is short.
constexpr uint64_t largest_file = (uint64_t{1} << 32) + 1024;

// The folder for files that can be made again (XDG Base Directory Specification), or nothing.
fs::path cache_folder() {
    const char* base = std::getenv("XDG_CACHE_HOME");
    if (base && base[0] == '/') return fs::path(base) / "shardfeed";
    const char* home = std::getenv("HOME");
    return home && home[0] == '/' ? fs::path(home) / ".cache" / "shardfeed" : fs::path();
}

bool is_remote(const std::string& url) {
    const std::string scheme = scheme_of(url);
    return !scheme.empty() && scheme != "file";
}

// A file name for a folder that has indexes of shards from many places. `whole` identifies the
// shard: its absolute path or its URL.
fs::path name_for(const fs::path& shard, const std::string& whole) {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(whole.data(), whole.size())));
    // The hash identifies the shard; what comes before it is for people.
    return shard.filename().string().substr(0, 200) + "." + hash + std::string(suffix);
}

// Where the index of a shard may lie, the best place first.
std::vector<fs::path> places_for(const std::string& url, const Options& options) {
    // A URL may have secrets, and other ones the next time.
    const bool remote = is_remote(url);
    const fs::path shard = remote ? cache_url(url) : path_of(url);
    const fs::path name =
        name_for(shard, remote ? shard.string() : fs::absolute(shard).lexically_normal().string());
    if (!options.index_dir.empty()) return {fs::path(from_home(options.index_dir)) / name};
    if (remote)
        if (const std::string folder = cache_index_folder(options); !folder.empty())
            return {fs::path(folder) / name};
    std::vector<fs::path> places;
    if (!remote) places.emplace_back(shard.string() + std::string(suffix));
    if (const fs::path cache = cache_folder(); !cache.empty()) places.push_back(cache / name);
    return places;
}

// Whether its index is one of the files of the cache.
bool in_cache(const std::string& url, const Options& options) {
    return is_remote(url) && options.index_dir.empty() && !cache_index_folder(options).empty();
}

// The mode of its file: in the cache, that of all files there.
mode_t mode_for(const std::string& url, const Options& options) {
    return in_cache(url, options) ? 0600 : 0666;
}

// A file that may be an index. It has no version to look at: index files are replaced whole, their
// checksums prove them, and in a cache other processes that use one set its time.
class IndexFile {
  public:
    // Nothing when there is no such file. Throws Error.
    static std::optional<IndexFile> open(const fs::path& path) {
        // A FIFO of that name must not be waited for.
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0) {
            if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return std::nullopt;
            throw system_error("open", errno);
        }
        IndexFile file{Descriptor(fd)};
        struct stat state = {};
        if (::fstat(file.descriptor_.get(), &state) != 0) throw system_error("fstat", errno);
        file.size_ = static_cast<uint64_t>(state.st_size);
        if (!S_ISREG(state.st_mode) || file.size_ > largest_file)
            throw Error(SHF_E_FORMAT, "this is no index file", "delete it; it is made again");
        return file;
    }

    [[nodiscard]] uint64_t size() const { return size_; }
    // Fewer bytes than asked for only at the end. Throws Error.
    [[nodiscard]] size_t read(uint64_t offset, std::span<uint8_t> out) const {
        const int64_t got = read_all(descriptor_.get(), out, offset);
        if (got < 0) throw system_error("read", errno);
        return static_cast<size_t>(got);
    }

  private:
    explicit IndexFile(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

    Descriptor descriptor_;
    uint64_t size_ = 0;
};

// The index in a file; nothing when there is no such file. Throws Error when it is damaged.
std::shared_ptr<const ShardIndex> load(const fs::path& path) {
    const auto file = IndexFile::open(path);
    if (!file) return nullptr;
    const auto size = static_cast<size_t>(file->size());
    const StorageRef storage = unpooled(size);
    if (file->read(0, {storage->data, size}) < size)
        throw Error(SHF_E_TRUNCATED, "the index file became shorter while it was read",
                    shrunk_help);
    return std::make_shared<const ShardIndex>(storage, size);
}

// The index that a writer has put beside its shard in an object store; nothing when there is none
// that can be read. Not for https://: a store that may be public is not asked for credentials
// because an index is missing. One request, which is not repeated.
std::shared_ptr<const ShardIndex> fetch_beside(const std::string& url, uint64_t shard_size,
                                               const Options& options, const Cancel& cancel) {
    const Scheme* const scheme = Sources::scheme_for(url, options);
    if (!is_remote(url) || url.starts_with("http") || !options.sources.empty() || !scheme ||
        !scheme->write)
        return nullptr;
    Options once = options;
    once.retries = 0;
    try {
        const auto source = Sources(once, cancel).open(url + std::string(suffix));
        const uint64_t size = source->size().value_or(0);
        const uint64_t most = std::min(std::max(shard_size, uint64_t{1} << 20), largest_file);
        if (!source->seekable() || size == 0 || size > most) return nullptr;
        const StorageRef storage = unpooled(static_cast<size_t>(size));
        if (source->read(0, {storage->data, static_cast<size_t>(size)}) < size) return nullptr;
        return std::make_shared<const ShardIndex>(storage, static_cast<size_t>(size));
    } catch (const Error& error) {
        if (ends_call(error.code())) throw;
        return nullptr;
    }
}

// Saves an index in the first of `places` that takes it, with `mode`. Returns where, or nothing
// with the last error.
std::optional<fs::path> save(const ShardIndex& index, std::span<const fs::path> places, mode_t mode,
                             int& error) {
    for (const fs::path& place : places) {
        // The folder of a shard is there; ours are made when they are first needed.
        std::error_code ignored;
        fs::create_directories(place.parent_path(), ignored);
        error = publish(place, index.file(), mode);
        if (error == 0) return place;
    }
    return std::nullopt;
}

bool uses_index_files(const Options& options) {
    return options.index == IndexUse::automatic || options.index == IndexUse::require;
}

// What is wrong with the index of a shard, when something is.
std::optional<Error> fault_of(const ShardIndex& index, const ShardIdentity& shard,
                              const Options& options) {
    if (index.identity() != shard)
        return Error(SHF_E_CHANGED, "the index is of another version of the shard",
                     "index=auto makes it again");
    // An index must not hide what a walk would refuse. One that was made under strict options is
    // good for all.
    if ((index.leniency() & ~leniency_of(options)) != 0)
        return Error(SHF_E_USAGE,
                     "the index was made under options that accept more: end_marker=optional, "
                     "concat, trailing=ignore, duplicate_keys=accept or allow_empty",
                     "set them here too; index=auto makes it again");
    return std::nullopt;
}

}  // namespace

int publish(const fs::path& path, std::span<const uint8_t> bytes, mode_t mode) {
    std::random_device random;
    // Not longer than the names of shards can be.
    const fs::path part = path.parent_path() / (".sfidx-" + std::to_string(::getpid()) + "-" +
                                                std::to_string(random()) + ".part");
    const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
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
    if (uses_index_files(options)) {
        const ShardIdentity identity = identify(source);
        std::optional<Error> last;
        for (const fs::path& place : places) {
            std::optional<Error> fault;
            try {
                if (auto index = load(place)) {
                    fault = fault_of(*index, identity, options);
                    if (!fault) {
                        if (in_cache(url, options)) count_cached_index(options, place, false);
                        return index;
                    }
                }
            } catch (const Error& error) {
                if (ends_call(error.code())) throw;
                fault = error;
            }
            if (!fault) continue;
            log(options, SHF_LOG_WARNING,
                shown + ": index " + escape(place.string()) + " is not used: " + fault->what());
            last = fault;
        }
        if (auto index = fetch_beside(url, identity.size, options, cancel)) {
            // It was made before its shard appeared (option prepare), and cannot know when.
            if (index->identity().modified == 0) index = index->with_time(identity.modified);
            if (const auto fault = fault_of(*index, identity, options)) {
                last = fault;
            } else {
                int error = 0;
                const auto place = save(*index, places, mode_for(url, options), error);
                if (place && in_cache(url, options)) count_cached_index(options, *place, true);
                log(options, SHF_LOG_INFO, shown + ": its index was beside it in the store");
                return index;
            }
        }
        if (options.index == IndexUse::require && last) throw Error(*last);
        if (options.index == IndexUse::require)
            throw Error(SHF_E_NOT_FOUND, "the shard has no index",
                        "index=auto makes " + escape(places[0].string()));
    }
    log(options, SHF_LOG_INFO, shown + ": making its index");
    auto index = index_tar(source, options, cancel);
    if (options.index != IndexUse::memory) {
        int error = 0;
        const auto place = save(*index, places, mode_for(url, options), error);
        if (place && in_cache(url, options)) count_cached_index(options, *place, true);
        log(options, SHF_LOG_INFO,
            shown + (place ? ": index saved as " + escape(place->string())
                           : ": the index could not be saved: " +
                                 std::error_code(error, std::generic_category()).message()));
    }
    return index;
}

std::shared_ptr<const ShardIndex> find_index(const std::string& url, Source& source,
                                             const Options& options) {
    if (!uses_index_files(options) || !source.seekable() || !source.size()) return nullptr;
    try {
        const ShardIdentity identity = identify(source);
        for (const fs::path& place : places_for(url, options))
            if (auto index = load(place); index && !fault_of(*index, identity, options))
                return index;
    } catch (const Error& error) {  // it is damaged, or cannot be read
        if (ends_call(error.code())) throw;
    }
    return nullptr;
}

namespace {

// What the index of one shard says of it as a whole. Throws Error that says why it is not known.
IndexSummary indexed_size(const std::string& url, const Options& options) {
    const Cancel never;
    const std::vector<fs::path> places = places_for(url, options);
    // To look at a remote shard is a request.
    std::error_code ignored;
    if (is_remote(url) && std::none_of(places.begin(), places.end(), [&](const fs::path& place) {
            return fs::exists(place, ignored);
        }))
        throw Error(SHF_E_NOT_FOUND, "the shard has no index");
    const Identity shard = Sources(options, never).stat(url);
    for (const fs::path& place : places) {
        const auto file = IndexFile::open(place);
        if (!file) continue;
        const IndexSummary summary = summary_of(
            file->size(),
            [&](uint64_t offset, std::span<uint8_t> out) { return file->read(offset, out); });
        if (summary.size != shard.size || summary.modified != shard.modified)
            throw Error(SHF_E_CHANGED, "its index is of another version of the shard");
        if ((summary.leniency & ~leniency_of(options)) != 0)
            throw Error(SHF_E_USAGE, "its index was made under options that accept more");
        return summary;
    }
    if (url.ends_with(".zip"))
        throw Error(SHF_E_UNSUPPORTED, "a ZIP file has a directory, which is not read here");
    throw Error(SHF_E_NOT_FOUND, "the shard has no index");
}

// Whether there is a file where the index of a shard may lie: asked for every shard of a stream, so
// without what it costs to find out why there is none.
bool may_be_indexed(const std::string& url, const Options& options) {
    if (is_remote(url)) return false;
    const auto is_there = [](const fs::path& path) { return ::access(path.c_str(), F_OK) == 0; };
    if (options.index_dir.empty()) {
        if (is_there(path_of(url) + std::string(suffix))) return true;
        if (const fs::path cache = cache_folder(); cache.empty() || !is_there(cache)) return false;
    }
    const auto places = places_for(url, options);
    return std::any_of(places.begin(), places.end(), is_there);
}

}  // namespace

bool has_index(const std::string& url, const Options& options) {
    if (!uses_index_files(options)) return false;
    try {
        return may_be_indexed(url, options) && !indexed_size(url, options).compressed;
    } catch (const Error& error) {
        if (ends_call(error.code())) throw;
        return false;
    }
}

std::shared_ptr<const DecodePoints> find_points(const std::string& url, Source& source,
                                                const Options& options) {
    if (!uses_index_files(options) || !source.seekable() || !source.size()) return nullptr;
    bool any = false;
    for (const fs::path& place : places_for(url, options)) {
        try {
            const auto file = IndexFile::open(place);
            any = any ||
                  (file && summary_of(file->size(), [&](uint64_t offset, std::span<uint8_t> out) {
                               return file->read(offset, out);
                           }).compressed);
        } catch (const Error&) {  // it is no index
        }
    }
    if (!any) return nullptr;
    const auto index = find_index(url, source, options);
    return index ? index->points() : nullptr;
}

std::optional<uint64_t> indexed_samples(const std::string& url, const Options& options) {
    if (!uses_index_files(options)) return std::nullopt;
    try {
        if (!may_be_indexed(url, options)) return std::nullopt;
        return indexed_size(url, options).samples;
    } catch (const Error& error) {
        if (ends_call(error.code())) throw;
        return std::nullopt;
    }
}

IndexedSizes indexed_sizes(const ShardList& shards, const Options& options) {
    constexpr uint64_t most_shards = 10000;  // about 20 microseconds each on a local disk
    IndexedSizes sizes;
    if (!uses_index_files(options)) {
        sizes.unknown = "the option index says to leave index files alone";
    } else if (shards.size() > most_shards) {
        sizes.unknown = "index files are looked at for up to " + plural(most_shards, "shard");
    }
    for (uint64_t i = 0; i < shards.size() && sizes.unknown.empty(); ++i) {
        const std::string url = shards.at(i);
        try {
            const IndexSummary summary = indexed_size(url, options);
            sizes.samples.push_back(summary.samples);
            sizes.bytes.push_back(summary.size);
        } catch (const Error& error) {
            if (ends_call(error.code())) throw;
            sizes.unknown = redact(url) + ": " + error.fault().cause;
            sizes.needs_index = error.code() != SHF_E_UNSUPPORTED && error.code() != SHF_E_IO;
        }
    }
    return sizes;
}

std::string store_index(const std::string& url, const ShardIndex& index, const Options& options) {
    int error = 0;
    const auto place = save(index, places_for(url, options), mode_for(url, options), error);
    if (!place) throw Error::system("saving the index", error);
    return place->string();
}

std::string build_index(const std::string& url, const Options& options, const Cancel& cancel) {
    const auto source = Sources(options, cancel).open(url);
    if (!source->seekable() || !source->size())
        throw Error(SHF_E_USAGE, "only files have an index", "copy the shard to a disk");
    const ShardFormat format = shard_format(*source, url, options);
    if (format == ShardFormat::zip)
        throw Error(SHF_E_UNSUPPORTED, "a ZIP file needs no index, it has a directory",
                    "open it as it is");
    if (format == ShardFormat::other)
        throw Error(SHF_E_UNSUPPORTED, "an index is of a tar, and this is none",
                    "write its samples as a tar");
    return store_index(url, *index_tar(*source, options, cancel), options);
}

}  // namespace shf
