#include "io/descriptor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>

namespace shf {

Error system_error(std::string_view doing, int number) {
    Fault fault = Error::system(doing, number).fault();
    if (number == EMFILE) {
        // open() fails with EMFILE when no number below the limit is free, so the limit is the
        // count. Listing /proc/self/fd would need a descriptor.
        rlimit limit = {};
        if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
            fault.cause += " (" + plural(limit.rlim_cur, "descriptor") + " are open)";
        fault.help = "raise the limit (ulimit -n), or read fewer shards at once: lanes, threads";
    } else if (number == ENOENT || number == ENOTDIR) {
        fault.help =
            "check the path, which counts from the working directory unless it starts "
            "with a slash";
    } else if (number == EACCES) {
        fault.help = "check the permissions of the file and of the folders above it";
    }
    return Error(std::move(fault));
}

bool lacks_descriptor(const Error& error) {
    const int number = error.fault().os_error;
    return number == EMFILE || number == ENFILE;
}

Descriptor::Descriptor(int fd) : fd_(fd) {
    if (fd < 0 || fd > STDERR_FILENO) return;
    fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int number = errno;
    ::close(fd);
    if (fd_ < 0) throw system_error("duplicate a descriptor", number);
}

void Descriptor::reset() noexcept {
    // Not repeated on EINTR: Linux has freed the descriptor even then, and another thread may own
    // the number already (POSIX.1-2017 leaves the state unspecified).
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool wait_for_any(std::span<pollfd> fds, const Cancel& cancel, Clock::time_point deadline) {
    using std::chrono::milliseconds;
    using std::chrono::nanoseconds;
    pollfd& last = fds.back();
    last = {.fd = cancel.fd(), .events = POLLIN, .revents = 0};
    for (;;) {
        cancel.check();
        auto left = std::max<Clock::duration>(deadline - Clock::now(), nanoseconds(0));
        // Without a descriptor to wait for the flag is looked at often enough.
        left = std::min<Clock::duration>(
            left, last.fd < 0 ? milliseconds(20) : milliseconds(std::chrono::hours(1)));
        const auto count = std::chrono::duration_cast<nanoseconds>(left).count();
        const timespec time = {.tv_sec = count / 1'000'000'000, .tv_nsec = count % 1'000'000'000};
        const int found = ::ppoll(fds.data(), fds.size(), &time, nullptr);
        if (found < 0 && errno != EINTR && errno != EAGAIN) throw system_error("poll", errno);
        cancel.check();
        if (found > 0) return true;
        if (found == 0 && Clock::now() >= deadline) return false;
    }
}

namespace {

// Which process has an open reader of standard input, 0 for none. There is one standard input in a
// process, so there is one such variable. It holds a process id and not a flag, since a forked
// child inherits it and has a standard input of its own.
std::atomic<pid_t> stdin_reader{0};

class StdinLease {
  public:
    StdinLease() {
        pid_t holder = stdin_reader.load();
        do {
            if (holder == ::getpid())
                throw Error(SHF_E_USAGE, "standard input is being read already",
                            "name \"-\" once, or close the other stream first");
        } while (!stdin_reader.compare_exchange_weak(holder, ::getpid()));
    }
    ~StdinLease() {
        pid_t holder = ::getpid();
        stdin_reader.compare_exchange_strong(holder, 0);
    }
    StdinLease(const StdinLease&) = delete;
    StdinLease& operator=(const StdinLease&) = delete;
};

// A descriptor, ours or the process's standard input.
struct Input {
    Descriptor owned;
    std::unique_ptr<StdinLease> lease;  // set: standard input, which we never close

    [[nodiscard]] int fd() const { return lease != nullptr ? STDIN_FILENO : owned.get(); }
};

class DescriptorReader : public Sequential {
  public:
    DescriptorReader(std::shared_ptr<Input> input, const Cancel& cancel, uint64_t silence)
        : input_(std::move(input)), cancel_(cancel), silence_(silence) {}

    size_t read(std::span<uint8_t> out) override {
        if (!waiting_since_) waiting_since_ = Clock::now();
        for (;;) {
            // poll() comes first even though the descriptor may be non-blocking: a FIFO that no
            // writer has opened yet reads as ended, but does not poll as ended. Standard input
            // belongs to the program and may be blocking or not.
            pollfd fds[2] = {{.fd = input_->fd(), .events = POLLIN, .revents = 0}, {}};
            if (!wait_for_any(fds, cancel_, deadline())) fail();
            if ((fds[0].revents & POLLNVAL) != 0) throw system_error("read", EBADF);
            if (fds[0].revents == 0) continue;
            const ssize_t size = ::read(input_->fd(), out.data(), out.size());
            if (size >= 0) {
                waiting_since_.reset();
                return static_cast<size_t>(size);
            }
            // EAGAIN: another process that shares the descriptor was faster.
            if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
                throw system_error("read", errno);
        }
    }

    bool ready() override {
        pollfd fd = {.fd = input_->fd(), .events = POLLIN, .revents = 0};
        if (cancel_.requested() || ::poll(&fd, 1, 0) > 0) return true;
        if (silence_ == 0) return false;
        if (!waiting_since_) waiting_since_ = Clock::now();
        return Clock::now() >= deadline();
    }

  private:
    [[nodiscard]] Clock::time_point deadline() const {
        if (silence_ == 0) return Clock::time_point::max();
        return *waiting_since_ + std::chrono::nanoseconds(silence_);
    }

    [[noreturn]] void fail() const {
        // Not TIMEOUT: that one means "call again".
        throw Error(Fault{.code = SHF_E_IO,
                          .os_error = ETIMEDOUT,
                          .shard = {},
                          .member = {},
                          .cause = "nothing was written into it for " +
                                   std::to_string(silence_ / 1'000'000) + " ms",
                          .help = "start the program that writes into it, or raise the option "
                                  "pipe_timeout, 0 for no limit"});
    }

    std::shared_ptr<Input> input_;
    const Cancel& cancel_;
    const uint64_t silence_;  // nanoseconds, 0: no limit
    std::optional<Clock::time_point> waiting_since_;
};

class DescriptorSource : public Source {
  public:
    DescriptorSource(std::shared_ptr<Input> input, const Cancel& cancel, uint64_t silence)
        : input_(std::move(input)), cancel_(cancel), silence_(silence) {}

    [[nodiscard]] std::optional<uint64_t> size() const override { return std::nullopt; }
    [[nodiscard]] bool seekable() const override { return false; }
    size_t read(uint64_t, std::span<uint8_t>) override { refuse_seek(); }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (offset != 0) refuse_seek();
        if (input_ == nullptr)
            throw Error(SHF_E_USAGE, "this input can be read only once",
                        "copy it to a file to read it again");
        return std::make_unique<DescriptorReader>(std::move(input_), cancel_, silence_);
    }

  private:
    std::shared_ptr<Input> input_;
    const Cancel& cancel_;
    const uint64_t silence_;
};

}  // namespace

void refuse_seek() {
    throw Error(SHF_E_USAGE, "this input can only be read from its start to its end",
                "copy it to a file to read parts of it");
}

std::unique_ptr<Source> descriptor_source(Descriptor descriptor, const Cancel& cancel,
                                          uint64_t silence) {
    auto input = std::make_shared<Input>();
    input->owned = std::move(descriptor);
    return std::make_unique<DescriptorSource>(std::move(input), cancel, silence);
}

std::unique_ptr<Source> stdin_source(const Cancel& cancel) {
    auto input = std::make_shared<Input>();
    input->lease = std::make_unique<StdinLease>();
    constexpr uint64_t for_ever = 0;  // a program may be started before there is anything to read
    return std::make_unique<DescriptorSource>(std::move(input), cancel, for_ever);
}

}  // namespace shf
