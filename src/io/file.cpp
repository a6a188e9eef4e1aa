#include "io/file.h"

#include "core/error.h"
#include "core/times.h"
#include "io/descriptor.h"
#include "io/seen_bytes.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <vector>

namespace shf {

namespace {

Identity identity_of(const struct stat& file) {
    return {.size = static_cast<uint64_t>(file.st_size),
            .modified = nanoseconds(file.st_mtim),
            .tag = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino),
            .version = {}};
}

// One open file. Its size and version are those of the moment it was opened, and each read proves
// that they still hold, so that bytes of two versions never end up in one shard.
class File {
  public:
    File(Descriptor descriptor, const struct stat& at_open, std::string path)
        : descriptor_(std::move(descriptor)),
          at_open_(at_open),
          path_(std::move(path)),
          seen_(std::make_shared<SeenBytes>(nanoseconds(at_open.st_ctim))) {}

    [[nodiscard]] uint64_t size() const { return static_cast<uint64_t>(at_open_.st_size); }

    [[nodiscard]] Identity identity() const { return identity_of(at_open_); }

    // Reads some bytes; 0 at the end only. Any thread.
    size_t read_some(uint64_t offset, std::span<uint8_t> out) const {
        if (offset >= size() || out.empty()) return 0;
        const std::span<uint8_t> wanted = within(offset, out);
        ssize_t got = 0;
        do {
            got = ::pread(descriptor_.get(), wanted.data(), wanted.size(),
                          static_cast<off_t>(offset));
        } while (got < 0 && errno == EINTR);
        if (got < 0) throw system_error("read at byte " + std::to_string(offset), errno);
        // After the read, not before: the kernel sets the modification time before it changes the
        // first byte, so bytes that were read under an unchanged time are the old ones.
        check_unchanged();
        if (got == 0) truncated(offset);
        return noted(offset, wanted, got);
    }

    // Fills the parts in one system call, without the look at the version; fewer bytes than asked
    // for when the file has become shorter, or when the call was interrupted.
    size_t read_parts(uint64_t offset, std::span<const iovec> parts) const {
        ssize_t got = 0;
        do {  // the kernel has less to do for one part that is no list
            got = parts.size() == 1
                      ? ::pread(descriptor_.get(), parts[0].iov_base, parts[0].iov_len,
                                static_cast<off_t>(offset))
                      : ::preadv(descriptor_.get(), parts.data(), static_cast<int>(parts.size()),
                                 static_cast<off_t>(offset));
        } while (got < 0 && errno == EINTR);
        if (got < 0) throw system_error("read at byte " + std::to_string(offset), errno);
        return static_cast<size_t>(got);
    }

    // As read_some, from the kernel's cache alone, without waiting for a disk; 0 also when nothing
    // is there, or when the file system cannot tell.
    size_t read_cached(uint64_t offset, std::span<uint8_t> out) const {
        if (offset >= size() || out.empty()) return 0;
        const std::span<uint8_t> wanted = within(offset, out);
        const iovec part = {wanted.data(), wanted.size()};
        const ssize_t got =
            ::preadv2(descriptor_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
        if (got <= 0) return 0;
        check_unchanged();
        return noted(offset, wanted, got);
    }

    // Whether the byte at `offset` is in the kernel's cache, as far as the file system can tell.
    [[nodiscard]] bool is_cached(uint64_t offset) const {
        uint8_t byte = 0;
        const iovec part = {&byte, 1};
        return ::preadv2(descriptor_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT) > 0;
    }

    void check_unchanged() const {
        const struct stat now = state();
        if (now.st_size < at_open_.st_size) truncated(static_cast<uint64_t>(now.st_size));
        if (now.st_size != at_open_.st_size)
            changed("it has grown from " + std::to_string(at_open_.st_size) + " to " +
                    plural(static_cast<uint64_t>(now.st_size), "byte"));
        if (now.st_mtim.tv_sec != at_open_.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != at_open_.st_mtim.tv_nsec)
            changed("its modification time is another one");
        if (const int64_t time = nanoseconds(now.st_ctim); time != seen_->changed())
            check_same(time);
    }

    // What was done to the file may have been a chmod, or a write after which somebody has put the
    // old modification time back: throws Error(CHANGED) when the bytes are not what was seen.
    void check_same(int64_t changed_at) const {
        timespec now = {};
        ::clock_gettime(CLOCK_REALTIME, &now);
        if (!seen_->same(
                changed_at, nanoseconds(now),
                [this](uint64_t offset, std::span<uint8_t> out) { return filled(offset, out); }))
            other_bytes();
    }
    // Whether the bytes at `offset` are these.
    void check_same(uint64_t offset, std::span<const uint8_t> bytes) const {
        std::vector<uint8_t> again(bytes.size());
        if (!filled(offset, again) || !std::equal(again.begin(), again.end(), bytes.begin()))
            other_bytes();
    }
    [[nodiscard]] const std::shared_ptr<SeenBytes>& seen() const { return seen_; }
    // Before the first read.
    void take_over(std::shared_ptr<SeenBytes> seen) { seen_ = std::move(seen); }

    // True when another file has taken the name, as a rename does. A file that is merely removed
    // is still the one that was opened. The path is looked up only when the file has lost a name,
    // because a relative path means another file once the program changes its directory.
    void check_not_replaced() const {
        if (state().st_nlink >= at_open_.st_nlink) return;
        struct stat named = {};
        if (::stat(path_.c_str(), &named) == 0 &&
            (named.st_ino != at_open_.st_ino || named.st_dev != at_open_.st_dev))
            changed("another file has taken its name");
    }

    // A file has a hole behind its last byte by definition, so only one before it counts.
    [[nodiscard]] bool ends_in_hole() const {
        if (at_open_.st_size == 0) return false;
        const off_t last = at_open_.st_size - 1;
        return ::lseek(descriptor_.get(), last, SEEK_HOLE) == last;
    }

    // A range was read where it is mapped.
    void note(uint64_t offset, std::span<const uint8_t> bytes) const {
        seen_->note(offset, bytes, size());
    }
    // All bytes of the file, for munmap(); none where the file system gives none.
    [[nodiscard]] std::span<const uint8_t> map() const {
        const auto length = static_cast<size_t>(size());
        void* const mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor_.get(), 0);
        if (mapped == MAP_FAILED) return {};
        return {static_cast<const uint8_t*>(mapped), length};
    }

    // Tells the kernel that the file will be read from front to back.
    void expect_sequential() const {
        ::posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    void expect(uint64_t offset, uint64_t length) const {
        ::posix_fadvise(descriptor_.get(), static_cast<off_t>(offset), static_cast<off_t>(length),
                        POSIX_FADV_WILLNEED);
    }

  private:
    // The part of `out` that the file fills from `offset` on.
    [[nodiscard]] std::span<uint8_t> within(uint64_t offset, std::span<uint8_t> out) const {
        return out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size() - offset)));
    }

    [[nodiscard]] size_t noted(uint64_t offset, std::span<const uint8_t> bytes, ssize_t got) const {
        const auto count = static_cast<size_t>(got);
        seen_->note(offset, bytes.first(count), size());
        return count;
    }

    [[nodiscard]] bool filled(uint64_t offset, std::span<uint8_t> out) const {
        while (!out.empty()) {
            const ssize_t got =
                ::pread(descriptor_.get(), out.data(), out.size(), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw system_error("read at byte " + std::to_string(offset), errno);
            if (got == 0) return false;
            out = out.subspan(static_cast<size_t>(got));
            offset += static_cast<uint64_t>(got);
        }
        return true;
    }

    [[noreturn]] static void other_bytes() {
        changed("its bytes are others, under the old modification time");
    }

    [[nodiscard]] struct stat state() const {
        struct stat now = {};
        if (::fstat(descriptor_.get(), &now) != 0) throw system_error("fstat", errno);
        return now;
    }

    [[noreturn]] void truncated(uint64_t length) const {
        throw Error(SHF_E_TRUNCATED,
                    "the file was cut to " + std::to_string(length) + " of " +
                        plural(size(), "byte") + " while it was read",
                    "let no program write to shards that are in use");
    }

    [[noreturn]] static void changed(const std::string& how) {
        throw Error(SHF_E_CHANGED, "the file changed while it was read: " + how,
                    "let no program write to shards that are in use; open it again");
    }

    Descriptor descriptor_;
    struct stat at_open_;
    std::string path_;
    std::shared_ptr<SeenBytes> seen_;
};

// So far ahead are bytes asked for that are not in the kernel's cache. Its own read-ahead is too
// short for disks and file systems on the network.
constexpr uint64_t asked_ahead = 8 << 20;

// Bytes of a file for as long as anybody needs them.
class MappedMemory {
  public:
    // Takes over what File::map() gave.
    explicit MappedMemory(std::span<const uint8_t> bytes) : bytes_(bytes) {}
    ~MappedMemory() { ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size()); }
    MappedMemory(const MappedMemory&) = delete;
    MappedMemory& operator=(const MappedMemory&) = delete;

  private:
    const std::span<const uint8_t> bytes_;
};

class FileMapping final : public Mapping {
  public:
    FileMapping(std::shared_ptr<const File> file, std::span<const uint8_t> bytes,
                const Cancel& cancel)
        : file_(std::move(file)), cancel_(cancel) {
        memory_ = std::make_shared<const MappedMemory>(bytes);
        bytes_ = bytes;
    }

    void expect(ByteRange range, bool in_order) const override {
        if (range.size == 0) return;
        if (!file_->is_cached(range.offset) || !file_->is_cached(range.offset + range.size - 1)) {
            file_->expect(range.offset, in_order ? std::max(range.size, asked_ahead) : range.size);
            wait_for(range);
        }
        file_->check_unchanged();
        const auto bytes =
            bytes_.subspan(static_cast<size_t>(range.offset), static_cast<size_t>(range.size));
        if (in_order) touch(bytes);
        file_->note(range.offset, bytes);
    }

  private:
    // The disk is waited for here, and most of its errors are errors, where a fault in the middle
    // of some code ends the program with SIGBUS. (Pages that are in memory are left to faults,
    // which map 16 of them in less time than this takes.)
    void wait_for(ByteRange range) const {
#ifdef MADV_POPULATE_READ
        constexpr size_t at_once = 16 << 20;  // between two looks whether somebody cancels
        static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
        const auto first = static_cast<size_t>(range.offset) / page * page;
        const auto end = static_cast<size_t>(range.offset + range.size);
        for (size_t at = first; at < end; at += at_once) {
            cancel_.check();
            auto* const start = const_cast<uint8_t*>(bytes_.data()) + at;
            if (::madvise(start, std::min(at_once, end - at), MADV_POPULATE_READ) == 0) continue;
            const int reason = errno;
            if (reason == EINVAL) return;  // Linux before 5.14
            file_->check_unchanged();
            throw system_error("read at byte " + std::to_string(at), reason);
        }
#else
        (void)range;
#endif
    }

    // Takes the page faults here, on a reader's thread, and not where the bytes are used. A fault
    // maps the pages of 64 KiB that are in memory (fault_around_bytes of Linux).
    static void touch(std::span<const uint8_t> bytes) {
        constexpr size_t around = 64 * 1024;
        const size_t first = reinterpret_cast<uintptr_t>(bytes.data()) % around;
        for (size_t at = 0; at < bytes.size(); at += at == 0 ? around - first : around)
            *static_cast<const volatile uint8_t*>(&bytes[at]);
    }

    const std::shared_ptr<const File> file_;
    const Cancel& cancel_;
};

class FileReader : public Sequential {
  public:
    FileReader(std::shared_ptr<const File> file, uint64_t offset, const Cancel& cancel)
        : file_(std::move(file)), offset_(offset), expected_(offset), cancel_(cancel) {
        file_->expect_sequential();
    }

    size_t read(std::span<uint8_t> out) override {
        cancel_.check();
        size_t size = file_->read_cached(offset_, out);
        if (size == 0) {
            // The kernel gets another hint only when bytes are missing, since that costs a walk
            // through its cache.
            if (offset_ + asked_ahead / 2 >= expected_ && expected_ < file_->size()) {
                const uint64_t start = std::max(expected_, offset_);
                file_->expect(start, offset_ + asked_ahead - start);
                expected_ = offset_ + asked_ahead;
            }
            size = file_->read_some(offset_, out);
        }
        if (file_->seen()->touched() && last_size_ > 0)
            file_->check_same(offset_ - last_size_, std::span(last_).first(last_size_));
        offset_ += size;
        last_size_ = std::min(size, last_.size());
        std::copy_n(out.data() + size - last_size_, last_size_, last_.data());
        return size;
    }

    bool skip(uint64_t size) override {
        if (size > file_->size() - std::min(offset_, file_->size())) return false;
        offset_ += size;
        last_size_ = 0;
        return true;
    }

    void finish() override {
        file_->check_unchanged();
        file_->check_not_replaced();
    }

  private:
    std::shared_ptr<const File> file_;
    uint64_t offset_;
    uint64_t expected_;  // the kernel has a hint about the bytes up to here
    // The last bytes before offset_: those after them must be of the same version.
    std::array<uint8_t, 512> last_{};
    size_t last_size_ = 0;
    const Cancel& cancel_;
};

class FileSource : public Source {
  public:
    FileSource(std::shared_ptr<File> file, const Cancel& cancel, bool mapped)
        : file_(std::move(file)), cancel_(cancel) {
        if (!mapped || file_->size() == 0 || file_->size() > SIZE_MAX) return;
        if (const std::span<const uint8_t> bytes = file_->map(); !bytes.empty())
            mapping_ = std::make_shared<const FileMapping>(file_, bytes, cancel_);
    }

    [[nodiscard]] std::optional<uint64_t> size() const override { return file_->size(); }
    [[nodiscard]] Identity identity() const override { return file_->identity(); }
    [[nodiscard]] bool ends_in_hole() const override { return file_->ends_in_hole(); }
    [[nodiscard]] bool seekable() const override { return true; }

    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        size_t done = 0;
        while (done < out.size()) {
            cancel_.check();
            const auto rest = out.subspan(done);
            const size_t size =
                file_->read_some(offset + done, rest.first(std::min(rest.size(), at_once)));
            if (size == 0) break;
            done += size;
        }
        return done;
    }

    size_t read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) override {
        std::array<iovec, 4> vector;
        if (parts.size() > vector.size()) return Source::read_scattered(offset, parts);
        size_t wanted = 0;
        for (size_t i = 0; i < parts.size(); ++i) {
            vector[i] = {parts[i].data(), parts[i].size()};
            wanted += parts[i].size();
        }
        size_t done = file_->read_parts(offset, std::span(vector).first(parts.size()));
        // One call gives at most 2 GiB, and a signal may end it early: the rest the careful way.
        size_t before = 0;
        for (const std::span<uint8_t> part : parts) {
            if (done < before + part.size() && done < wanted) {
                const auto rest = part.subspan(done - before);
                const size_t got = read(offset + done, rest);
                done += got;
                if (got < rest.size()) break;
            }
            before += part.size();
        }
        return done;
    }

    // Where the bytes are in the kernel's cache already, hints only cost time.
    void prefetch(std::span<const ByteRange> ranges) override {
        if (ranges.empty() || file_->is_cached(ranges.back().offset)) return;
        for (const ByteRange& range : ranges) file_->expect(range.offset, range.size);
    }
    void verify() override { file_->check_unchanged(); }
    [[nodiscard]] std::shared_ptr<const Mapping> mapping() const override { return mapping_; }
    [[nodiscard]] bool touched() const override { return file_->seen()->touched(); }
    [[nodiscard]] std::shared_ptr<SeenBytes> seen() const override { return file_->seen(); }
    void take_over(std::shared_ptr<SeenBytes> seen) override {
        if (seen) file_->take_over(std::move(seen));
    }

    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        return std::make_unique<FileReader>(file_, offset, cancel_);
    }

  private:
    // Read by one call to the system, between two looks whether somebody cancels.
    static constexpr size_t at_once = 16 << 20;

    std::shared_ptr<File> file_;
    const Cancel& cancel_;
    std::shared_ptr<const Mapping> mapping_;  // NULL: none
};

// Never waits inside open(), where nothing could end it: not for the writer of a FIFO
// (POSIX.1-2017, XSH open()), and not for another process that has a lease on the file. Linux
// answers EWOULDBLOCK meanwhile, and takes the lease away after a while (fcntl(2), "Leases").
Descriptor open_for_reading(const std::string& path, const Cancel& cancel) {
    for (;;) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd >= 0) return Descriptor(fd);
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) throw system_error("open", errno);
        pollfd none[1] = {};
        wait_for_any(none, cancel, Clock::now() + std::chrono::milliseconds(10));
    }
}

struct stat state_of(const Descriptor& descriptor) {
    struct stat state = {};
    if (::fstat(descriptor.get(), &state) != 0) throw system_error("fstat", errno);
    if (S_ISDIR(state.st_mode))
        throw Error(Fault{.code = SHF_E_IO,
                          .os_error = EISDIR,
                          .shard = {},
                          .member = {},
                          .cause = "this is a directory",
                          .help = "name the shards in it, as in DIR/{000000..000099}.tar"});
    return state;
}

}  // namespace

std::unique_ptr<Source> file_source(const std::string& path, const Cancel& cancel, uint64_t silence,
                                    bool mapped) {
    Descriptor descriptor = open_for_reading(path, cancel);
    const struct stat state = state_of(descriptor);
    if (!S_ISREG(state.st_mode)) return descriptor_source(std::move(descriptor), cancel, silence);
    return std::make_unique<FileSource>(std::make_shared<File>(std::move(descriptor), state, path),
                                        cancel, mapped);
}

Identity identity_of_file(const std::string& path) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) throw Error::system("look at the shard", errno);
    return identity_of(file);
}

std::string read_whole_file(const std::string& path, uint64_t limit, const Cancel& cancel,
                            uint64_t silence) {
    Descriptor descriptor = open_for_reading(path, cancel);
    const struct stat state = state_of(descriptor);
    constexpr size_t step = 1 << 20;
    // Resized by the bytes that arrive, not by the size that is claimed (/proc says 0).
    std::string text;
    std::unique_ptr<Sequential> waiting;
    if (S_ISREG(state.st_mode)) {
        text.reserve(
            static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(state.st_size), limit)));
    } else {
        waiting = descriptor_source(std::move(descriptor), cancel, silence)->open_sequential(0);
    }
    const auto read = [&](std::span<uint8_t> out) -> size_t {
        if (waiting) return waiting->read(out);
        for (;;) {
            cancel.check();
            const ssize_t got = ::read(descriptor.get(), out.data(), out.size());
            if (got >= 0) return static_cast<size_t>(got);
            if (errno != EINTR) throw system_error("read", errno);
        }
    };
    for (;;) {
        const size_t size = text.size();
        const size_t free = std::max<size_t>(text.capacity() - size, 1);
        text.resize(size + std::min(size == text.capacity() ? step : free, step));
        const size_t got =
            read({reinterpret_cast<uint8_t*>(text.data()) + size, text.size() - size});
        text.resize(size + got);
        if (got == 0) return text;
        if (text.size() > limit)
            throw Error(SHF_E_LIMIT, "the file has more than " + plural(limit, "byte"), "split it");
    }
}

}  // namespace shf
