#include "cache/cache_lock.h"

#include "core/fork.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

namespace shf {

namespace {

// Descriptors of all lock files of this process, plus one; 0: a free place.
constinit std::array<std::atomic<int>, 1024> open_locks{};

void close_in_child() {
    for (std::atomic<int>& place : open_locks)
        if (const int held = place.exchange(0)) ::close(held - 1);
}

int take_place(int fd) {
    static const int registered = pthread_atfork(nullptr, nullptr, close_in_child);
    (void)registered;
    for (size_t i = 0; i < open_locks.size(); ++i) {
        int none = 0;
        if (open_locks[i].compare_exchange_strong(none, fd + 1)) return static_cast<int>(i);
    }
    return -1;
}

struct flock range_of(short type, uint64_t first, uint64_t count) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(first);
    range.l_len = static_cast<off_t>(count);
    return range;
}

}  // namespace

void BlockLocks::open(int root, const std::string& path) {
    close();
    (void)fork_generation();
    int fd =
        ::openat(root, path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0 && fd <= STDERR_FILENO) {
        const int low = fd;
        fd = ::fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        ::close(low);
    }
    if (fd < 0) return;
    generation_ = fork_generation();
    slot_ = take_place(fd);
    if (slot_ < 0) ::close(fd);
}

int BlockLocks::fd() const {
    if (slot_ < 0 || generation_ != fork_generation()) return -1;
    return open_locks[static_cast<size_t>(slot_)].load() - 1;
}

uint64_t BlockLocks::try_lock(uint64_t first, uint64_t count) {
    const int file = fd();
    if (file < 0) return count;
    while (count > 0) {
        struct flock range = range_of(F_WRLCK, first, count);
        if (::fcntl(file, F_OFD_SETLK, &range) == 0) {
            vain_ = false;
            return count;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EACCES) return count;  // no locks there
        range = range_of(F_WRLCK, first, count);
        if (::fcntl(file, F_OFD_GETLK, &range) != 0) return 0;
        if (range.l_type == F_UNLCK) continue;  // given up meanwhile
        const auto start = static_cast<uint64_t>(range.l_start);
        count = start > first ? std::min(count - 1, start - first) : 0;
    }
    return 0;
}

void BlockLocks::unlock(uint64_t first, uint64_t count) {
    const int file = fd();
    if (file < 0 || count == 0) return;
    struct flock range = range_of(F_UNLCK, first, count);
    (void)::fcntl(file, F_OFD_SETLK, &range);
}

void BlockLocks::beat() {
    const auto now = Clock::now();
    if (now < next_beat_) return;
    next_beat_ = now + std::chrono::milliseconds(100);
    if (const int file = fd(); file >= 0) (void)::futimens(file, nullptr);
}

int64_t BlockLocks::last_beat() const {
    struct stat status {};
    const int file = fd();
    if (file < 0 || ::fstat(file, &status) != 0) return 0;
    return static_cast<int64_t>(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
}

void BlockLocks::close() noexcept {
    if (slot_ < 0) return;
    if (generation_ == fork_generation()) {
        // A forked child that has not yet closed its copy has no locks after this.
        unlock(0, static_cast<uint64_t>(INT64_MAX));
        if (const int held = open_locks[static_cast<size_t>(slot_)].exchange(0)) ::close(held - 1);
    }
    slot_ = -1;
}

}  // namespace shf
