#include "core/error.h"
#include "core/options.h"
#include "io/command.h"
#include "io/pipe.h"
#include "io/pipe_signal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

namespace shf {

namespace {

// For a command that has closed its standard input to end.
constexpr auto end_grace = std::chrono::seconds(1);
constexpr const char* read_all = "a command must read its standard input up to its end";

class PipeSink : public Sink {
  public:
    PipeSink(const std::string& command, const char* shell, uint64_t silence, const Cancel& cancel)
        : silence_(silence), command_(command, shell, Command::Flow::from_us, silence, cancel) {}

    void write(std::span<const uint8_t> bytes) override {
        const PipeSignalBlocked signal;
        Clock::time_point deadline = command_.deadline(Clock::now());
        while (!bytes.empty()) {
            const ssize_t written = ::write(command_.fd(), bytes.data(), bytes.size());
            if (written >= 0) {
                bytes = bytes.subspan(static_cast<size_t>(written));
                deadline = command_.deadline(Clock::now());
                continue;
            }
            if (errno == EPIPE) {
                signal.take();
                refuse_end();
            }
            if (errno != EINTR && errno != EAGAIN) throw system_error("write", errno);
            if (!command_.wait(POLLOUT, deadline)) refuse_silence("took no data");
        }
        command_.drain();
    }

    void publish() override {
        // Its last bytes may be in the pipe when it ends. Who has an end of it to read can count
        // them; where the system gives none, only the status is left.
        const std::string name = "/proc/self/fd/" + std::to_string(command_.fd());
        Descriptor left;
        if (const int fd = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); fd >= 0)
            left = Descriptor(fd);
        command_.close_end();
        if (!command_.wait_for_end(command_.deadline(Clock::now())))
            refuse_silence("did not end after its input");
        if (const std::optional<Error> fault = command_.fault()) throw Error(*fault);
        int unread = 0;
        if (left.get() >= 0 && ::ioctl(left.get(), FIONREAD, &unread) == 0 && unread > 0)
            throw early_end();
    }

  private:
    [[nodiscard]] Error early_end() const {
        return Error(
            SHF_E_CHILD,
            "the command ended with status 0 before it had read everything" + command_.excerpt(),
            read_all);
    }

    // Nobody reads what we write.
    [[noreturn]] void refuse_end() {
        if (!command_.wait_for_end(Clock::now() + end_grace))
            throw Error(SHF_E_CHILD,
                        "the command has closed its standard input before it had read everything" +
                            command_.excerpt(),
                        read_all);
        if (const std::optional<Error> fault = command_.fault()) throw Error(*fault);
        throw early_end();
    }

    [[noreturn]] void refuse_silence(const char* what) const {
        throw Error(SHF_E_CHILD,
                    std::string("the command ") + what + " for " +
                        std::to_string(silence_ / 1'000'000) + " ms" + command_.excerpt(),
                    "raise the option pipe_timeout, 0 for no limit");
    }

    const uint64_t silence_;
    Command command_;
};

}  // namespace

std::unique_ptr<Sink> pipe_sink(const std::string& command, const Options& options,
                                const Cancel& cancel, const char* shell) {
    if (pipes_refused(options)) refuse_pipe();
    require_command(command);
    return std::make_unique<PipeSink>(command, shell, options.pipe_timeout, cancel);
}

}  // namespace shf
