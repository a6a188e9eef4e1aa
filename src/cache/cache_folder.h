// The folder of the cache: whose it is, how much is in it, what makes room.
//
//   DIR/shardfeed-UID/CACHEDIR.TAG            what proves that the folder is ours
//                     shards/URL/VERSION/     hashes; one folder for each version of a shard
//                        version              its URL and version; its time is that of the last use
//                        lock                 who fetches which block: see cache_lock.h
//                        00000000, 00000001   blocks
//                        *.part               files in the making
//                     index/*.sfidx           index files of these shards
//                     usage, evict            bytes in the folder; who makes room
//
// Files, and no database: the promise "all or nothing after kill -9" is that of rename(2), readers
// take no lock, and a block is found by one openat, in 2 microseconds.
#pragma once

#include "io/descriptor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct Options;

// What is known of a version of a shard.
struct CacheLabel {
    std::string url;  // without secrets
    std::string version;
    uint64_t size = 0;
    int64_t modified = 0;  // as in Identity
};

// A folder with the blocks of one version of one shard.
struct CachedVersion {
    std::string path;   // below the folder of the cache: shards/URL/VERSION
    int64_t used = 0;   // nanoseconds since 1970: when it was last opened or filled
    uint64_t disk = 0;  // bytes of its files
};

// Sizes of files as they count for cache_size.
constexpr uint64_t on_disk(uint64_t size) {
    return (size + 4095) / 4096 * 4096;
}

class CacheFolder {
  public:
    // The folder for this user in `dir`; made when it is not there and `make`. `limit`: bytes, 0:
    // none. Throws Error (USAGE, IO, NOSPACE, NOT_FOUND) when it cannot or must not be used (C7).
    CacheFolder(const std::string& dir, uint64_t limit, bool make);

    [[nodiscard]] int fd() const { return root_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] uint64_t limit() const { return limit_; }

    // Counts bytes that will be written, after it made room for them. False: there is none now.
    bool reserve(uint64_t bytes);
    void release(uint64_t bytes) { (void)add_used(-static_cast<int64_t>(on_disk(bytes))); }

    // All versions of all shards, or of one: the name of its folder.
    [[nodiscard]] std::vector<CachedVersion> versions(const std::string& url_folder = {}) const;
    // Removes the files of a version that are ours. Readers that have them open continue (C5).
    // Returns the bytes that were freed.
    uint64_t remove(const CachedVersion& version);
    // Removes index files that were not used since `before` (nanoseconds since 1970), and leftovers
    // of an hour. Returns the bytes that were freed.
    uint64_t remove_indexes(int64_t before);
    // Counts again what is there. Removes what crashed writers left (C11).
    void recount();

    // What is in the file `version` of a version, when it is whole.
    [[nodiscard]] bool read_label(const std::string& path, CacheLabel& label) const;
    // Writes it, or notes that the version is used now.
    int write_label(const std::string& path, const CacheLabel& label) const;
    // Makes the folder of all versions of a URL. Returns an error number: EEXIST, it was there.
    [[nodiscard]] int make_url(const std::string& url_folder) const;
    // Removes it when there is nothing in it.
    void remove_empty(const std::string& url_folder) const;
    // Makes the folder of a version. Returns an error number.
    [[nodiscard]] int make_version(const std::string& path) const;

  private:
    int64_t add_used(int64_t bytes);
    void set_used(uint64_t bytes);
    // Removes what was not used for longest, until there is room for `bytes`; and a sixteenth of
    // the limit more, so that this is seldom done, where that is not the version used last.
    void evict(uint64_t bytes);
    uint64_t count_files(const std::string& path, bool clean) const;

    std::string path_;
    Descriptor root_;
    uint64_t limit_;
};

// The folders that a URL without secrets and a version have: 32 hexadecimal digits each. They are
// no proof: a block says in full what it is of.
std::string url_folder(std::string_view url);
std::string version_folder(const CacheLabel& label);

// Names of files in the folder of a version.
std::string block_name(uint64_t number);
// The number of a block; no_block for other names.
inline constexpr uint64_t no_block = UINT64_MAX;
uint64_t block_of_name(std::string_view name);
// A name for a file in the making that no other process or thread has.
std::string part_name(std::string_view name);

// The names in a folder below `root`, without . and .. ; nothing when it is not there.
std::vector<std::string> names_in(int root, const std::string& path);

// Nanoseconds since 1970.
int64_t wall_clock();

// The folder where index files of remote shards lie when there is a cache: made when it is not
// there. Empty when there is no cache, or it cannot be used.
std::string cache_index_folder(const Options& options);
// After an index file in that folder was used, or `made`: its bytes count for cache_size.
void count_cached_index(const Options& options, const std::string& path, bool made);

}  // namespace shf
