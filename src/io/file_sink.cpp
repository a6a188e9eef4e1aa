#include "io/file_sink.h"

#include "core/error.h"
#include "core/options.h"
#include "io/pipe_signal.h"
#include "url/scheme.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <utility>

namespace shf {

namespace {

// The folder of a file, as open() takes it.
std::string sink_folder(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == path.npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

// Writes start this early, so that little is left to wait for when the shard is whole.
constexpr uint64_t write_behind = uint64_t{16} << 20;

// FAT, and some file systems of networks, have no hard links.
bool rename_where_no_links_are(const std::string& part, const std::string& path, int number) {
    if (number != EPERM && number != ENOTSUP && number != ENOSYS && number != EMLINK) return false;
    if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST) throw target_exists();
    return false;
}

void link_part(const std::string& part, const std::string& path) {
    if (::link(part.c_str(), path.c_str()) == 0) {
        ::unlink(part.c_str());
        return;
    }
    const int number = errno;
    if (number == EEXIST) throw target_exists();
    if (!rename_where_no_links_are(part, path, number)) throw Error::system("link", number);
}

// Gives a whole file its name.
void name_part(const std::string& part, const std::string& path, bool overwrite) {
    if (!overwrite) return link_part(part, path);
    if (::rename(part.c_str(), path.c_str()) != 0) throw Error::system("rename", errno);
}

void sync_folder(int folder) {
    // Some file systems have no fsync of folders.
    if (::fsync(folder) != 0 && errno != EINVAL && errno != EROFS)
        throw Error::system("fsync of the folder", errno);
}

// Where a prepared file waits. Tokens come from elsewhere: nothing else is touched.
std::string part_of(const PreparedFile& file) {
    const std::string path = path_of(file.url);
    if (file.place.find('/') != file.place.npos || !file.place.starts_with('.') ||
        !file.place.ends_with(".partial"))
        throw Error(SHF_E_USAGE, "this is no file that a writer has prepared",
                    "give what the writer said");
    return path.substr(0, path.rfind('/') + 1) + file.place;
}

bool has_size_of(const struct stat& info, const PreparedFile& file) {
    return S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) == file.size;
}

// No two writers use the same name. The inode is not compared: some network file systems give a
// file another one on each machine.
bool is_waiting(const std::string& part, const PreparedFile& file) {
    struct stat info = {};
    return ::lstat(part.c_str(), &info) == 0 && has_size_of(info, file);
}

bool is_this_file(const std::string& path, const PreparedFile& file) {
    struct stat info = {};
    return ::lstat(path.c_str(), &info) == 0 && has_size_of(info, file) &&
           std::to_string(info.st_ino) == file.upload;
}

class FileSink : public Sink {
  public:
    FileSink(std::string path, const Options& options)
        : path_(std::move(path)),
          overwrite_(options.overwrite),
          durable_(options.durable),
          keep_partial_(options.keep_partial) {
        struct stat info = {};
        // Asked here too, so that nobody writes a shard in vain.
        if (::lstat(path_.c_str(), &info) == 0) {
            if (!overwrite_) throw target_exists();
            if (!S_ISREG(info.st_mode))
                throw Error(SHF_E_USAGE, "it is there, and is no file",
                            "give the name of a file, or of none");
        }
        const size_t slash = path_.rfind('/') + 1;  // npos + 1 is 0
        std::random_device random;
        // Readers that take all of *.tar in the folder do not take it.
        part_ = path_.substr(0, slash) + "." + path_.substr(slash).substr(0, 200) + "." +
                std::to_string(::getpid()) + "-" + std::to_string(random()) + ".partial";
        if (durable_) {
            // Opened before anything is written, so that it cannot fail when the shard is whole.
            const int folder =
                ::open(sink_folder(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (folder < 0) refuse_folder("open its folder", errno);
            folder_ = Descriptor(folder);
        }
        file_ = Descriptor(open_part());
        made_ = true;
    }

    ~FileSink() override {
        if (made_ && !published_ && !keep_partial_ && ::getpid() == owner_) ::unlink(part_.c_str());
    }

    void write(std::span<const uint8_t> bytes) override {
        while (!bytes.empty()) {
            const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) throw Error::system("write", errno);
            bytes = bytes.subspan(static_cast<size_t>(written));
            size_ += static_cast<uint64_t>(written);
        }
        if (durable_ && size_ - started_ >= write_behind) {
            // A hint: what it says of errors, fsync says again.
            (void)::sync_file_range(file_.get(), static_cast<off64_t>(started_),
                                    static_cast<off64_t>(size_ - started_), SYNC_FILE_RANGE_WRITE);
            started_ = size_;
        }
    }

    [[nodiscard]] bool can_cut() const override { return true; }
    void cut(uint64_t size) override {
        if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0 ||
            ::lseek(file_.get(), static_cast<off_t>(size), SEEK_SET) < 0)
            throw Error::system("truncate", errno);
        size_ = size;
        started_ = std::min(started_, size);
    }

    void sync() override {
        // After a failure the system may have dropped what it could not write: a second fsync that
        // succeeds would prove nothing.
        if (::fsync(file_.get()) != 0) throw Error::system("fsync", errno);
        // With the name that it has now.
        if (folder_.get() >= 0 && !std::exchange(named_, true)) sync_folder(folder_.get());
    }

    [[nodiscard]] std::string path() const override {
        return published_ && !prepared_ ? path_ : part_;
    }

    void publish() override {
        close_part();
        name_part(part_, path_, overwrite_);
        published_ = true;
        if (!durable_) return;
        try {
            sync_folder(folder_.get());
        } catch (...) {
            if (!overwrite_) ::unlink(path_.c_str());
            throw;
        }
    }

    PreparedFile prepare() override {
        struct stat info = {};
        if (::fstat(file_.get(), &info) != 0) throw Error::system("fstat", errno);
        close_part();
        published_ = prepared_ = true;  // it is somebody else's
        return {.url = {},
                .size = size_,
                .upload = std::to_string(info.st_ino),
                .place = part_.substr(part_.rfind('/') + 1),
                .parts = {}};
    }

  private:
    int open_part() const {
        const int fd = ::open(part_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) return fd;
        const int number = errno;
        Fault fault = Error::system("create", number).fault();
        if (number == EACCES || number == EROFS || number == EPERM)
            fault.help = "write to a folder that you may write to";
        if (number == ENOENT) fault.help = "make its folder first";
        throw Error(fault);
    }

    [[noreturn]] static void refuse_folder(const char* doing, int number) {
        Fault fault = Error::system(doing, number).fault();
        fault.help = number == ENOENT ? "make its folder first"
                                      : "durable=false needs no folder that can be read";
        throw Error(fault);
    }

    // All that was written is on its way to the disk, or there.
    void close_part() {
        if (durable_) sync();
        // A file system of a network may say here what it could not write.
        if (::close(file_.release()) != 0 && errno != EINTR) throw Error::system("close", errno);
    }

    const std::string path_;
    const bool overwrite_, durable_, keep_partial_;
    const pid_t owner_ = ::getpid();
    std::string part_;
    Descriptor file_, folder_;
    uint64_t size_ = 0, started_ = 0;  // written, and asked to be brought to the disk
    bool made_ = false, published_ = false, prepared_ = false;
    bool named_ = false;  // its first name is on the disk
};

std::atomic<bool> stdout_taken{false};

class StdoutSink : public Sink {
  public:
    explicit StdoutSink(const Cancel& cancel) : cancel_(cancel) {
        if (::isatty(STDOUT_FILENO) != 0)
            throw Error(SHF_E_USAGE, "standard output is a terminal",
                        "send it to a file or to another command");
        if (stdout_taken.exchange(true))
            throw Error(SHF_E_USAGE, "another writer has standard output", "use one at a time");
        struct stat info = {};
        // Writes that do not block, so that a cancel ends them, without changing the open file that
        // other processes share: a description of our own.
        if (::fstat(STDOUT_FILENO, &info) == 0 && S_ISFIFO(info.st_mode))
            own_ = Descriptor(::open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    }
    ~StdoutSink() override { stdout_taken.store(false); }

    void write(std::span<const uint8_t> bytes) override {
        write_all(own_.get() >= 0 ? own_.get() : STDOUT_FILENO, bytes, cancel_);
    }
    void publish() override {}

  private:
    const Cancel& cancel_;
    Descriptor own_;
};

}  // namespace

void write_all(int fd, std::span<const uint8_t> bytes, const Cancel& cancel) {
    const PipeSignalBlocked signal;
    while (!bytes.empty()) {
        pollfd fds[2] = {{.fd = fd, .events = POLLOUT, .revents = 0}, {}};
        (void)wait_for_any(fds, cancel, Clock::time_point::max());
        // Where it is not O_NONBLOCK this may wait for the reader, who takes this much soon.
        const ssize_t written =
            ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{64} << 10));
        if (written >= 0) {
            bytes = bytes.subspan(static_cast<size_t>(written));
        } else if (errno == EPIPE) {
            signal.take();
            throw Error(SHF_E_IO, "write: the reader is gone before it had everything",
                        "look at what the command on the other side of the pipe says");
        } else if (errno != EINTR && errno != EAGAIN) {
            throw Error::system("write", errno);
        }
    }
}

void publish_prepared_path(const PreparedFile& file, const Options& options) {
    const std::string path = path_of(file.url), part = part_of(file);
    if (!is_this_file(path, file)) {
        if (!is_waiting(part, file))
            throw Error(SHF_E_IO, "what was prepared is not there any more: it was discarded",
                        "write the shard again");
        name_part(part, path, options.overwrite);
    } else {
        ::unlink(part.c_str());  // of a publication that ended in between
    }
    if (!options.durable) return;
    const Descriptor folder(::open(sink_folder(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0) throw Error::system("open its folder", errno);
    sync_folder(folder.get());
}

void discard_prepared_path(const PreparedFile& file) {
    const std::string part = part_of(file);
    if (::unlink(part.c_str()) != 0 && errno != ENOENT) throw Error::system("unlink", errno);
}

std::unique_ptr<Sink> file_sink(const std::string& path, const Options& options) {
    return std::make_unique<FileSink>(path, options);
}

std::unique_ptr<Sink> stdout_sink(const Cancel& cancel) {
    return std::make_unique<StdoutSink>(cancel);
}

}  // namespace shf
