#include "cache/cache_catalogue.h"

#include "cache/cache_block.h"
#include "cache/cache_folder.h"
#include "cache/cache_url.h"
#include "core/error.h"
#include "core/opening.h"
#include "core/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cstdlib>
#include <functional>

namespace shf {

namespace {

CacheFolder folder_of(const Options& options) {
    std::string dir = options.cache;
    if (const char* set = std::getenv("SHARDFEED_CACHE"); dir.empty() && set) dir = set;
    if (dir.empty())
        throw Error(SHF_E_USAGE, "no folder of a cache is given",
                    "set the option cache, or SHARDFEED_CACHE in the environment");
    return {dir, options.cache_size, false};
}

bool is_chosen(const CacheRow& row, const std::vector<std::string>& urls) {
    return urls.empty() || std::any_of(urls.begin(), urls.end(), [&](const std::string& url) {
               return url == row.url || (url.ends_with('/') && row.url.starts_with(url));
           });
}

using Act = std::function<void(const CachedVersion&, const CacheLabel&, CacheRow&)>;

std::vector<CacheRow> rows(const CacheFolder& folder, const CacheChoice& choice, const Act& act) {
    std::vector<std::string> urls;
    for (const std::string& url : choice.urls) urls.push_back(cache_url(url));
    std::vector<CacheRow> found;
    const int64_t now = wall_clock();
    for (const CachedVersion& version : folder.versions()) {
        Opening::check();
        CacheLabel label;
        CacheRow row;
        if (folder.read_label(version.path, label)) {
            row.url = label.url;
            row.version = label.version;
            row.size = label.size;
        }
        row.disk = version.disk;
        row.age_ns = static_cast<uint64_t>(std::max<int64_t>(0, now - version.used));
        for (const std::string& name : names_in(folder.fd(), version.path)) {
            const uint64_t number = block_of_name(name);
            if (number < (label.size + cache_block_size - 1) / cache_block_size)
                row.data += block_data_size(label, number);
        }
        if (row.age_ns < choice.older_than_ns || !is_chosen(row, urls)) continue;
        act(version, label, row);
        found.push_back(std::move(row));
    }
    std::sort(found.begin(), found.end(), [](const CacheRow& a, const CacheRow& b) {
        return a.url != b.url ? a.url < b.url : a.age_ns < b.age_ns;
    });
    return found;
}

// Whether all of the block is as it was written.
bool is_good(const OpenBlock& block, std::vector<uint8_t>& buffer) {
    HeldBytes held;
    for (uint64_t at = 0; at < block.size();) {
        const size_t count = block.read(at, buffer, held);
        if (count == 0) return false;
        at += count;
    }
    return true;
}

}  // namespace

std::vector<CacheRow> list_cache(const Options& options, const CacheChoice& choice) {
    return rows(folder_of(options), choice,
                [](const CachedVersion&, const CacheLabel&, CacheRow&) {});
}

std::vector<CacheRow> verify_cache(const Options& options, const CacheChoice& choice) {
    CacheFolder folder = folder_of(options);
    std::vector<uint8_t> buffer(256 * 1024);
    return rows(
        folder, choice, [&](const CachedVersion& version, const CacheLabel& label, CacheRow& row) {
            if (label.url.empty()) {
                // Its blocks cannot be told from those of another one. A label that is not there is
                // being written.
                const std::string file = version.path + "/version";
                if (::faccessat(folder.fd(), file.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
                    ++row.faults;
                    row.disk -= std::min(row.disk, folder.remove(version));
                }
                return;
            }
            for (const std::string& name : names_in(folder.fd(), version.path)) {
                const uint64_t number = block_of_name(name);
                if (number == no_block) continue;
                Opening::check();
                const std::string file = version.path + "/" + name;
                struct stat status {};
                if (::fstatat(folder.fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
                    continue;  // evicted meanwhile
                BlockLook look;
                const auto block = OpenBlock::open(folder.fd(), file, label, number, look);
                if (block ? is_good(*block, buffer) : look.state != BlockState::damaged) continue;
                ++row.faults;
                ::unlinkat(folder.fd(), file.c_str(), 0);
                const uint64_t size = block_data_size(label, number);
                row.data -= std::min(row.data, size);
                row.disk -= std::min(row.disk, on_disk(static_cast<uint64_t>(status.st_size)));
            }
        });
}

std::vector<CacheRow> clear_cache(const Options& options, const CacheChoice& choice) {
    CacheFolder folder = folder_of(options);
    auto removed =
        rows(folder, choice, [&](const CachedVersion& version, const CacheLabel&, CacheRow&) {
            folder.remove(version);
        });
    if (choice.urls.empty())
        folder.remove_indexes(wall_clock() - static_cast<int64_t>(std::min<uint64_t>(
                                                 choice.older_than_ns, INT64_MAX / 2)));
    folder.recount();
    return removed;
}

}  // namespace shf
