#include "io/pipe.h"

#include "core/error.h"
#include "core/options.h"
#include "io/command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace shf {

namespace {

class PipeReader : public Sequential {
  public:
    PipeReader(const std::string& command, const char* shell, uint64_t timeout,
               const Cancel& cancel)
        : cancel_(cancel),
          timeout_(timeout),
          hides_status_(command.find("||") != command.npos),
          command_(command, shell, Command::Flow::to_us, timeout, cancel) {}

    size_t read(std::span<uint8_t> out) override {
        if (!command_.is_ours())
            throw Error(SHF_E_FORKED, "the command belongs to the parent process",
                        "open the stream in the child");
        if (failure_) throw Error(*failure_);
        if (ended_ || out.empty()) return 0;
        // A call that its own time limit ends does not begin the time of silence again.
        if (!waiting_since_) waiting_since_ = Clock::now();
        const Clock::time_point deadline = command_.deadline(*waiting_since_);
        for (;;) {
            cancel_.check();
            const ssize_t size = ::read(command_.fd(), out.data(), out.size());
            if (size > 0) {
                any_data_ = true;
                waiting_since_.reset();
                return static_cast<size_t>(size);
            }
            if (size == 0) break;
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) fail(system_error("read", errno));
            if (!command_.wait(POLLIN, deadline)) fail(silence());
        }
        // The end of the data is the end of the shard only when the command says that it went well.
        if (!command_.wait_for_end(deadline)) fail(silence());
        if (std::optional<Error> fault = command_.fault()) fail(*fault);
        if (!any_data_) fail(nothing());
        ended_ = true;
        return 0;
    }

    bool ready() override {
        if (failure_ || ended_ || cancel_.requested() || !command_.is_ours()) return true;
        // A command that waits for room in its stderr would never become ready.
        command_.drain();
        pollfd fd = {.fd = command_.fd(), .events = POLLIN, .revents = 0};
        if (::poll(&fd, 1, 0) > 0) return true;
        if (!waiting_since_) waiting_since_ = Clock::now();
        return Clock::now() >= command_.deadline(*waiting_since_);
    }

  private:
    [[noreturn]] void fail(const Error& error) {
        failure_ = error.fault();
        throw Error(error);
    }

    [[nodiscard]] Error silence() const {
        // Not TIMEOUT: that one means "call again".
        return Error(SHF_E_CHILD,
                     "the command gave no data for " + std::to_string(timeout_ / 1'000'000) +
                         " ms" + command_.excerpt(),
                     "raise the option pipe_timeout, 0 for no limit");
    }

    // No archive is empty. As a rule a program failed, and the command did not.
    [[nodiscard]] Error nothing() const {
        return Error(
            SHF_E_TRUNCATED,
            "the command gave no data and ended with status 0" + command_.excerpt(),
            hides_status_
                ? "leave out the || of the command, as in \"|| true\": it hides the status "
                  "of what fails before it"
                : try_in_a_shell);
    }

    const Cancel& cancel_;
    const uint64_t timeout_;
    const bool hides_status_;  // the command says what to do when a program fails
    Command command_;
    bool any_data_ = false;
    std::optional<Clock::time_point> waiting_since_;
    std::optional<Fault> failure_;
    bool ended_ = false;
};

class PipeSource : public Source {
  public:
    PipeSource(std::string command, const char* shell, uint64_t timeout, const Cancel& cancel)
        : command_(std::move(command)), shell_(shell), timeout_(timeout), cancel_(cancel) {}

    [[nodiscard]] std::optional<uint64_t> size() const override { return std::nullopt; }
    [[nodiscard]] bool seekable() const override { return false; }
    size_t read(uint64_t, std::span<uint8_t>) override { refuse_seek(); }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (offset != 0) refuse_seek();
        if (std::exchange(opened_, true))
            throw Error(SHF_E_USAGE, "the output of a command can be read only once",
                        "write it to a file");
        cancel_.check();
        return std::make_unique<PipeReader>(command_, shell_, timeout_, cancel_);
    }

  private:
    std::string command_;
    const char* shell_;
    uint64_t timeout_;
    const Cancel& cancel_;
    bool opened_ = false;
};

}  // namespace

bool pipes_refused(const Options& options) {
    const char* value = std::getenv("SHARDFEED_SECURE");
    return options.secure || (value != nullptr && std::strcmp(value, "1") == 0);
}

void refuse_pipe() {
    throw Error(SHF_E_USAGE, "pipe: URLs are refused in secure mode",
                "secure mode comes from the option secure or from SHARDFEED_SECURE=1 in the "
                "environment");
}

void require_command(const std::string& command) {
    if (command.find_first_not_of(" \t\n") == command.npos)
        throw Error(SHF_E_USAGE, "pipe: without a command", "write pipe:COMMAND");
}

const char* default_shell() {
    return ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

std::unique_ptr<Source> pipe_source(std::string command, const Options& options,
                                    const Cancel& cancel, const char* shell) {
    require_command(command);
    return std::make_unique<PipeSource>(std::move(command), shell, options.pipe_timeout, cancel);
}

}  // namespace shf
