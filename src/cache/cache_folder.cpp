#include "cache/cache_folder.h"

#include "cache/cache_block.h"
#include "cache/cache_bytes.h"
#include "core/error.h"
#include "core/options.h"
#include "url/scheme.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

namespace shf {

namespace {

constexpr std::string_view tag_name = "CACHEDIR.TAG";
// https://bford.info/cachedir/: programs for backup leave such a folder out.
constexpr std::string_view tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# A cache of shardfeed. All of it can be deleted; it is fetched again.\n";
constexpr std::string_view label_magic = "SHFVERS1";
constexpr size_t longest_label = 1 << 20;
constexpr int64_t hour = 3600LL * 1000 * 1000 * 1000;
constexpr const char* other_folder = "give another folder as cache";

int64_t nanoseconds(const timespec& time) {
    return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

std::string hex(XXH128_hash_t hash) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return text;
}

bool is_part(std::string_view name) {
    return name.ends_with(".part");
}

bool is_hash(std::string_view name) {
    return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

// Locks the whole of a file for this open file, when nobody else has it.
bool lock_now(int fd) {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
}

// A file in the making that was left by a process that is gone (C11). Its writer locks it.
bool is_leftover(int root, const std::string& path) {
    const int fd = ::openat(root, path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const Descriptor file(fd);
    struct stat status {};
    return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           wall_clock() - nanoseconds(status.st_mtim) > hour && lock_now(fd);
}

// A millisecond each: nobody holds such a lock for longer than a few microseconds, unless he was
// stopped there.
constexpr int short_lock_tries = 50;

// Holds a flock on one file of the folder for a moment. It is given back even where a forked child
// has a copy of the descriptor.
class ShortLock {
  public:
    ShortLock(int root, const char* name, int tries) {
        const int fd =
            ::openat(root, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
        if (fd < 0) return;
        file_ = Descriptor(fd);
        for (; tries > 0; --tries) {
            if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
                locked_ = true;
                return;
            }
            if (errno != EWOULDBLOCK && errno != EINTR) return;
            if (tries > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        busy_ = true;
    }
    ~ShortLock() {
        if (locked_) ::flock(file_.get(), LOCK_UN);
    }
    ShortLock(const ShortLock&) = delete;
    ShortLock& operator=(const ShortLock&) = delete;
    [[nodiscard]] bool locked() const { return locked_; }
    // Another one has it. Where the file system has no room for the file, or no locks, nobody has.
    [[nodiscard]] bool busy() const { return busy_; }
    [[nodiscard]] int fd() const { return file_.get(); }

  private:
    Descriptor file_;
    bool locked_ = false, busy_ = false;
};

// Two numbers of the same value but for a key: a torn one is seen.
constexpr uint64_t usage_key = 0x5348465553414745;

bool read_usage(int fd, uint64_t& used) {
    uint8_t bytes[16];
    if (read_all(fd, bytes, 0) != sizeof bytes) return false;
    used = le64(bytes);
    return (used ^ usage_key) == le64(bytes + 8);
}

void write_usage(int fd, uint64_t used) {
    std::string bytes;
    put_number(bytes, used);
    put_number(bytes, used ^ usage_key);
    (void)write_all(fd, bytes_of(bytes), 0);
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw Error(SHF_E_USAGE, "the cache folder " + escape(path) + " " + why, other_folder);
}

}  // namespace

int64_t wall_clock() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}

std::string url_folder(std::string_view url) {
    return hex(XXH3_128bits(url.data(), url.size()));
}

std::string version_folder(const CacheLabel& label) {
    const std::string whole = std::to_string(label.size) + " " + label.version;
    return hex(XXH3_128bits(whole.data(), whole.size()));
}

std::string block_name(uint64_t number) {
    char name[24];
    std::snprintf(name, sizeof name, "%08llu", static_cast<unsigned long long>(number));
    return name;
}

uint64_t block_of_name(std::string_view name) {
    if (name.size() < 8 || name.size() > 18) return no_block;
    uint64_t number = 0;
    for (const char c : name) {
        if (c < '0' || c > '9') return no_block;
        number = number * 10 + static_cast<uint64_t>(c - '0');
    }
    return number;
}

std::string part_name(std::string_view name) {
    std::random_device random;
    return std::string(name) + "." + std::to_string(::getpid()) + "-" + std::to_string(random()) +
           std::to_string(random()) + ".part";
}

std::vector<std::string> names_in(int root, const std::string& path) {
    std::vector<std::string> names;
    const int fd = ::openat(root, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return names;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd), ::closedir);
    if (!folder) {
        ::close(fd);
        return names;
    }
    while (const dirent* entry = ::readdir(folder.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

CacheFolder::CacheFolder(const std::string& given, uint64_t limit, bool make)
    : path_((std::filesystem::path(from_home(given)) / ("shardfeed-" + std::to_string(::geteuid())))
                .string()),
      limit_(limit) {
    const std::filesystem::path dir = std::filesystem::path(path_).parent_path();
    if (make) {
        std::error_code ignored;
        std::filesystem::create_directories(dir, ignored);  // what fails, mkdir says again
        if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
            throw system_error("making the cache folder " + escape(path_), errno);
    }
    const int fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && !make)
        throw Error(SHF_E_NOT_FOUND, "there is no cache in " + escape(dir.string()));
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) refuse(path_, "is a link, or no folder");
    if (fd < 0) throw system_error("opening the cache folder " + escape(path_), errno);
    root_ = Descriptor(fd);
    struct stat status {};
    if (::fstat(root_.get(), &status) != 0) throw system_error("looking at the cache", errno);
    if (status.st_uid != ::geteuid()) refuse(path_, "belongs to another user");
    if ((status.st_mode & 077) != 0)
        refuse(path_, "can be used by other users: its mode is not 0700");
    const Descriptor mark = [&] {
        const int found =
            ::openat(root_.get(), tag_name.data(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        return found < 0 ? Descriptor() : Descriptor(found);
    }();
    if (mark.get() >= 0) {
        // Another process may be writing it now; what begins as it does is ours.
        uint8_t bytes[43];
        const int64_t count = read_all(mark.get(), bytes, 0);
        if (count < 0 || std::memcmp(bytes, tag.data(), static_cast<size_t>(count)) != 0)
            refuse(path_, "has a CACHEDIR.TAG that is not ours");
        return;
    }
    const std::vector<std::string> names = names_in(root_.get(), ".");
    if (std::any_of(names.begin(), names.end(), [](const std::string& name) {
            return name != tag_name && name != "shards" && name != "index" && name != "usage" &&
                   name != "evict";
        }))
        refuse(path_, "has files of others in it");
    const int made =
        ::openat(root_.get(), tag_name.data(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (made < 0) throw system_error("writing to the cache folder " + escape(path_), errno);
    const Descriptor file(made);
    if (const int error = write_all(file.get(), bytes_of(tag), 0))
        throw system_error("writing to the cache folder " + escape(path_), error);
}

int CacheFolder::make_version(const std::string& path) const {
    for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1))
        if (::mkdirat(fd(), path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return errno;
    return ::mkdirat(fd(), path.c_str(), 0700) != 0 && errno != EEXIST ? errno : 0;
}

int CacheFolder::make_url(const std::string& url_folder) const {
    const std::string path = "shards/" + url_folder;
    if (::mkdirat(fd(), path.c_str(), 0700) == 0) return 0;
    if (errno != ENOENT) return errno;
    (void)::mkdirat(fd(), "shards", 0700);
    return ::mkdirat(fd(), path.c_str(), 0700) == 0 ? 0 : errno;
}

void CacheFolder::remove_empty(const std::string& url_folder) const {
    ::unlinkat(fd(), ("shards/" + url_folder).c_str(), AT_REMOVEDIR);
}

// ---- What the version is ------------------------------------------------------------------------

bool CacheFolder::read_label(const std::string& path, CacheLabel& label) const {
    const int found =
        ::openat(fd(), (path + "/version").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (found < 0) return false;
    const Descriptor file(found);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 48 ||
        status.st_size > static_cast<off_t>(longest_label))
        return false;
    std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
    if (read_all(file.get(), bytes, 0) != static_cast<int64_t>(bytes.size())) return false;
    const uint8_t* data = bytes.data();
    if (std::memcmp(data, label_magic.data(), 8) != 0 ||
        le64(data + 8) != XXH3_64bits(data + 16, bytes.size() - 16))
        return false;
    const uint64_t url_size = le64(data + 32);
    const uint64_t version_size = le64(data + 40);
    const uint64_t texts = bytes.size() - 48;
    if (url_size > texts || version_size != texts - url_size) return false;
    label.size = le64(data + 16);
    label.modified = static_cast<int64_t>(le64(data + 24));
    const char* text = reinterpret_cast<const char*>(data + 48);
    label.url.assign(text, static_cast<size_t>(url_size));
    label.version.assign(text + url_size, static_cast<size_t>(version_size));
    return true;
}

int CacheFolder::write_label(const std::string& path, const CacheLabel& label) const {
    const std::string name = path + "/version";
    CacheLabel there;
    if (read_label(path, there) && there.url == label.url && there.version == label.version &&
        there.size == label.size && there.modified == label.modified) {
        if (::utimensat(fd(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0) return 0;
        // On a network file system also when another process has just put the same one in its
        // place.
        if (errno != ENOENT) return errno;
    }
    if (const int error = make_version(path)) return error;
    std::string rest;
    put_number(rest, label.size);
    put_number(rest, static_cast<uint64_t>(label.modified));
    put_number(rest, uint64_t{label.url.size()});
    put_number(rest, uint64_t{label.version.size()});
    rest += label.url + label.version;
    std::string bytes(label_magic);
    put_number(bytes, uint64_t{XXH3_64bits(rest.data(), rest.size())});
    bytes += rest;
    const std::string part = path + "/" + part_name("version");
    const int made =
        ::openat(fd(), part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (made < 0) return errno;
    const Descriptor file(made);
    int error = write_all(file.get(), bytes_of(bytes), 0);
    if (error == 0 && ::renameat(fd(), part.c_str(), fd(), name.c_str()) != 0) error = errno;
    if (error != 0) ::unlinkat(fd(), part.c_str(), 0);
    return error;
}

// ---- Room ---------------------------------------------------------------------------------------

int64_t CacheFolder::add_used(int64_t bytes) {
    if (limit_ == 0) return 0;
    // Without the lock the number is wrong until the next counting.
    const ShortLock lock(fd(), "usage", short_lock_tries);
    if (!lock.locked()) return 0;
    uint64_t used = 0;
    if (!read_usage(lock.fd(), used)) return -1;
    const uint64_t now =
        bytes < 0 && used < static_cast<uint64_t>(-bytes) ? 0 : used + static_cast<uint64_t>(bytes);
    write_usage(lock.fd(), now);
    return static_cast<int64_t>(std::min<uint64_t>(now, INT64_MAX));
}

void CacheFolder::set_used(uint64_t bytes) {
    if (limit_ == 0) return;
    const ShortLock lock(fd(), "usage", short_lock_tries);
    if (lock.locked()) write_usage(lock.fd(), bytes);
}

bool CacheFolder::reserve(uint64_t bytes) {
    if (limit_ == 0) {
        // Who has a limit counts again: what is written now is in no number.
        ::unlinkat(fd(), "usage", 0);
        return true;
    }
    const auto more = static_cast<int64_t>(on_disk(bytes));
    const auto counted = [&](int64_t used) { return used >= 0; };
    const auto fits = [&](int64_t used) {
        return counted(used) && static_cast<uint64_t>(used) <= limit_;
    };
    int64_t used = add_used(more);
    if (fits(used)) return true;
    // One process makes room. The others read on past the cache meanwhile, but for a folder whose
    // bytes are not counted yet: counting a new one takes no time, and its blocks are to be kept.
    const ShortLock alone(fd(), "evict", counted(used) ? 1 : short_lock_tries);
    if (!counted(used)) used = add_used(more);  // another one may have counted
    if (fits(used)) return true;
    if (!alone.busy()) {
        evict(on_disk(bytes));
        used = add_used(more);
        // A count that cannot be kept: the writing of the block will say why.
        if (!counted(used) || fits(used)) return true;
    }
    if (counted(used)) release(bytes);
    return false;
}

uint64_t CacheFolder::count_files(const std::string& path, bool clean) const {
    uint64_t bytes = 0;
    for (const std::string& name : names_in(fd(), path)) {
        const std::string file = path + "/" + name;
        struct stat status {};
        if (::fstatat(fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (is_part(name) && clean && is_leftover(fd(), file)) {
            ::unlinkat(fd(), file.c_str(), 0);
            continue;
        }
        // A block in the making was counted whole.
        const bool grows =
            is_part(name) && block_of_name(name.substr(0, name.find('.'))) != no_block;
        bytes += on_disk(grows ? cache_block_size : static_cast<uint64_t>(status.st_size));
    }
    return bytes;
}

std::vector<CachedVersion> CacheFolder::versions(const std::string& only) const {
    std::vector<CachedVersion> found;
    const std::vector<std::string> urls =
        only.empty() ? names_in(fd(), "shards") : std::vector<std::string>{only};
    for (const std::string& url : urls) {
        if (!is_hash(url)) continue;
        for (const std::string& name : names_in(fd(), "shards/" + url)) {
            if (!is_hash(name)) continue;
            CachedVersion version{"shards/" + url + "/" + name, 0, 0};
            for (const char* stamp : {"/version", "/lock"}) {
                struct stat status {};
                if (::fstatat(fd(), (version.path + stamp).c_str(), &status, AT_SYMLINK_NOFOLLOW) ==
                    0)
                    version.used = std::max(version.used, nanoseconds(status.st_mtim));
            }
            version.disk = count_files(version.path, false);
            found.push_back(std::move(version));
        }
    }
    return found;
}

uint64_t CacheFolder::remove(const CachedVersion& version) {
    uint64_t freed = 0;
    const auto unlink = [&](const std::string& file) {
        struct stat status {};
        if (::fstatat(fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            ::unlinkat(fd(), file.c_str(), 0) == 0)
            freed += on_disk(static_cast<uint64_t>(status.st_size));
    };
    for (const std::string& name : names_in(fd(), version.path)) {
        const std::string file = version.path + "/" + name;
        // A file in the making is its writer's; he takes it away when the folder is not what it
        // was. Other names are not ours.
        if (block_of_name(name) != no_block || name == "version" ||
            (is_part(name) && is_leftover(fd(), file)))
            unlink(file);
    }
    // Who fetches a block has locked it, and makes the folder again when he has to: two who hold
    // different files of this name fetch a block twice, no more.
    const std::string lock = version.path + "/lock";
    const int found = ::openat(fd(), lock.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (found >= 0) {
        const Descriptor file(found);
        if (lock_now(file.get())) unlink(lock);
    }
    ::unlinkat(fd(), version.path.c_str(), AT_REMOVEDIR);
    ::unlinkat(fd(), version.path.substr(0, version.path.rfind('/')).c_str(), AT_REMOVEDIR);
    return freed;
}

uint64_t CacheFolder::remove_indexes(int64_t before) {
    uint64_t freed = 0;
    for (const std::string& name : names_in(fd(), "index")) {
        const std::string file = "index/" + name;
        struct stat status {};
        if (!(name.ends_with(".sfidx") || is_part(name)) ||
            ::fstatat(fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        const int64_t limit = is_part(name) ? std::min(before, wall_clock() - hour) : before;
        if (nanoseconds(status.st_mtim) < limit && ::unlinkat(fd(), file.c_str(), 0) == 0)
            freed += on_disk(static_cast<uint64_t>(status.st_size));
    }
    return freed;
}

void CacheFolder::recount() {
    uint64_t bytes = count_files("index", false);
    for (const CachedVersion& version : versions()) bytes += count_files(version.path, true);
    set_used(bytes);
}

void CacheFolder::evict(uint64_t bytes) {
    std::vector<CachedVersion> all = versions();
    (void)remove_indexes(wall_clock() - 30 * 24 * hour);
    uint64_t used = 0;
    for (CachedVersion& version : all) {
        version.disk = count_files(version.path, true);
        used += version.disk;
    }
    used += count_files("index", false);
    // Index files are removed as shards are: those that were not used for longest.
    for (const std::string& name : names_in(fd(), "index")) {
        struct stat status {};
        const std::string path = "index/" + name;
        if (name.ends_with(".sfidx") &&
            ::fstatat(fd(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
            all.push_back({path, nanoseconds(status.st_mtim),
                           on_disk(static_cast<uint64_t>(status.st_size))});
    }
    std::sort(all.begin(), all.end(),
              [](const CachedVersion& a, const CachedVersion& b) { return a.used < b.used; });
    const auto last_version = std::find_if(all.rbegin(), all.rend(), [](const CachedVersion& one) {
        return one.path.starts_with("shards/");
    });
    const auto last = static_cast<size_t>(all.rend() - last_version);
    const uint64_t enough = limit_ - std::min(limit_, bytes);
    const uint64_t better = enough - std::min(enough, limit_ / 16);
    for (size_t i = 0; i < all.size(); ++i) {
        if (used <= (i + 1 < last ? better : enough)) break;
        const bool is_index = all[i].path.starts_with("index/");
        const uint64_t freed =
            !is_index ? remove(all[i])
                      : (::unlinkat(fd(), all[i].path.c_str(), 0) == 0 ? all[i].disk : 0);
        used -= std::min(used, freed);
    }
    set_used(used);
}

void count_cached_index(const Options& options, const std::string& path, bool made) {
    // The time of a file says when it was used last.
    if (!made) {
        ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
        return;
    }
    try {
        struct stat status {};
        if (::lstat(path.c_str(), &status) == 0)
            (void)CacheFolder(options.cache, options.cache_size, false)
                .reserve(static_cast<uint64_t>(status.st_size));
    } catch (const Error&) {  // no cache any more: nothing to count
    }
}

std::string cache_index_folder(const Options& options) {
    if (options.cache.empty()) return {};
    try {
        const CacheFolder folder(options.cache, 0, true);
        if (::mkdirat(folder.fd(), "index", 0700) != 0 && errno != EEXIST) return {};
        struct stat status {};
        if (::fstatat(folder.fd(), "index", &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(status.st_mode))
            return {};
        return folder.path() + "/index";
    } catch (const Error&) {  // the opening of the shard says it
        return {};
    }
}

}  // namespace shf
