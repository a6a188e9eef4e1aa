#include "cache/cache_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace shf {

int write_all(int fd, std::span<const uint8_t> bytes, uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        if (count == 0) return ENOSPC;
        bytes = bytes.subspan(static_cast<size_t>(count));
        offset += static_cast<uint64_t>(count);
    }
    return 0;
}

int64_t read_all(int fd, std::span<const iovec> wanted, uint64_t offset) {
    std::array<iovec, 4> parts{};
    std::copy(wanted.begin(), wanted.end(), parts.begin());
    uint64_t done = 0;
    for (std::span<iovec> rest(parts.data(), wanted.size());;) {
        while (!rest.empty() && rest.front().iov_len == 0) rest = rest.subspan(1);
        if (rest.empty()) break;
        const ssize_t got = ::preadv(fd, rest.data(), static_cast<int>(rest.size()),
                                     static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        auto count = static_cast<size_t>(got);
        done += count;
        for (iovec& part : rest) {
            const size_t here = std::min(count, part.iov_len);
            part.iov_base = static_cast<uint8_t*>(part.iov_base) + here;
            part.iov_len -= here;
            count -= here;
        }
    }
    return static_cast<int64_t>(done);
}

int64_t read_all(int fd, std::span<uint8_t> out, uint64_t offset) {
    const iovec whole = {out.data(), out.size()};
    return read_all(fd, {&whole, 1}, offset);
}

}  // namespace shf
