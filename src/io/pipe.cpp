#include "io/pipe.h"

#include "core/error.h"
#include "core/options.h"
#include "io/descriptor.h"
#include "io/pipe_watch.h"
#include "io/spawn.h"
#include "url/redact.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

extern "C" char** environ;

namespace shf {

namespace {

using std::chrono::milliseconds;

constexpr auto term_grace = std::chrono::seconds(5);  // between TERM and KILL
constexpr auto group_grace = milliseconds(500);       // for the rest, when the shell has ended
constexpr auto kill_grace = std::chrono::seconds(5);  // a process in a dead mount never ends
constexpr size_t pipe_size = 1 << 20;                 // the most that Linux allows without rights
constexpr size_t tail_size = 4096;                    // kept of stderr
constexpr size_t excerpt_size = 500;                  // shown of it; a message has 1,007 bytes

struct Channel {
    Descriptor read_end;
    Descriptor write_end;

    Channel() {
        int fds[2] = {-1, -1};
        if (::pipe2(fds, O_CLOEXEC) != 0) throw system_error("pipe", errno);
        try {
            read_end = Descriptor(fds[0]);
        } catch (...) {
            ::close(fds[1]);
            throw;
        }
        write_end = Descriptor(fds[1]);
        // Only our end: the flag belongs to the open file description, and the two ends have one
        // each. A child that finds its stdout non-blocking loses bytes.
        if (::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) throw system_error("fcntl", errno);
    }
};

// Starts `shell -c command`. Returns its process id, which is that of its process group too.
pid_t start(const std::string& command, const char* shell, int out, int err) {
    // Without pipefail the status of "curl ... | zstd -d" says nothing about curl. Only bash surely
    // has it; another shell is asked in a subshell, because an unknown option ends a shell at once
    // (XCU 2.8.1).
    const bool bash = std::string_view(shell).ends_with("/bash");
    std::string script =
        bash ? command : "(set -o pipefail) 2>/dev/null && set -o pipefail\n" + command;
    std::vector<std::string> words = {shell, "-c", std::move(script)};
    if (bash) words.insert(words.begin() + 1, {"-o", "pipefail"});
    return spawn(
        {.program = shell, .words = words, .out = out, .err = err, .environment = environ});
}

// "9 (SIGKILL)". strsignal() may be neither called by two threads nor understood by programs.
std::string signal_name(int number) {
    std::string name = std::to_string(number);
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
    if (const char* known = ::sigabbrev_np(number)) name += std::string(" (SIG") + known + ")";
#endif
#endif
    return name;
}

class PipeReader : public Sequential {
  public:
    PipeReader(const std::string& command, const char* shell, uint64_t timeout,
               const Cancel& cancel)
        : cancel_(cancel), timeout_(timeout), hides_status_(command.find("||") != command.npos) {
        Channel out, err;
        ::fcntl(out.read_end.get(), F_SETPIPE_SZ, static_cast<int>(pipe_size));
        watch_.emplace(out.read_end.get());
        child_ = start(command, shell, out.write_end.get(), err.write_end.get());
        watch_->started(child_);
        out_ = std::move(out.read_end);
        err_ = std::move(err.read_end);
    }

    ~PipeReader() override {
        // After a fork the child of the parent is not ours to end, nor can we wait for it.
        if (child_ > 0 && ::getpid() == owner_) stop();
    }

    size_t read(std::span<uint8_t> out) override {
        if (::getpid() != owner_)
            throw Error(SHF_E_FORKED, "the command belongs to the parent process",
                        "open the stream in the child");
        if (failure_) throw Error(*failure_);
        if (ended_ || out.empty()) return 0;
        // A call that its own time limit ends does not begin the time of silence again.
        if (!waiting_since_) waiting_since_ = Clock::now();
        const Clock::time_point start = *waiting_since_;
        for (;;) {
            cancel_.check();
            const ssize_t size = ::read(out_.get(), out.data(), out.size());
            if (size > 0) {
                any_data_ = true;
                waiting_since_.reset();
                return static_cast<size_t>(size);
            }
            if (size == 0) break;
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) fail(system_error("read", errno));
            pollfd fds[3] = {{.fd = out_.get(), .events = POLLIN, .revents = 0},
                             {.fd = err_.get(), .events = POLLIN, .revents = 0},
                             {}};
            if (!wait_for_any(fds, cancel_, deadline(start))) fail(silence());
            if (fds[1].revents != 0) drain();
        }
        // The end of the data is the end of the shard only when the command says that it went well.
        wait_for_child();
        if (!any_data_) fail(nothing());
        ended_ = true;
        return 0;
    }

    bool ready() override {
        if (failure_ || ended_ || cancel_.requested() || ::getpid() != owner_) return true;
        // A command that waits for room in its stderr would never become ready.
        drain();
        pollfd fd = {.fd = out_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&fd, 1, 0) > 0) return true;
        if (!waiting_since_) waiting_since_ = Clock::now();
        return Clock::now() >= deadline(*waiting_since_);
    }

  private:
    [[nodiscard]] Clock::time_point deadline(Clock::time_point start) const {
        if (timeout_ == 0) return Clock::time_point::max();
        return start + std::chrono::nanoseconds(timeout_);
    }

    [[noreturn]] void fail(Error error) {
        failure_ = error.fault();
        throw error;
    }

    [[nodiscard]] Error silence() const {
        // Not TIMEOUT: that one means "call again".
        return Error(SHF_E_CHILD,
                     "the command gave no data for " + std::to_string(timeout_ / 1'000'000) +
                         " ms" + excerpt(),
                     "raise the option pipe_timeout, 0 for no limit");
    }

    // No archive is empty. As a rule a program failed, and the command did not.
    [[nodiscard]] Error nothing() const {
        return Error(
            SHF_E_TRUNCATED, "the command gave no data and ended with status 0" + excerpt(),
            hides_status_
                ? "leave out the || of the command, as in \"|| true\": it hides the status "
                  "of what fails before it"
                : in_a_shell);
    }

    // Takes what is in stderr now, and keeps the end of it.
    void drain() {
        std::array<char, 8192> buffer;
        for (int turns = 0; err_.get() >= 0 && turns < 16; ++turns) {
            const ssize_t size = ::read(err_.get(), buffer.data(), buffer.size());
            if (size < 0 && errno == EINTR) continue;
            if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (size <= 0) {
                err_.reset();
                return;
            }
            tail_.append(buffer.data(), static_cast<size_t>(size));
            if (tail_.size() > tail_size) tail_.erase(0, tail_.size() - tail_size);
        }
    }

    // The end of stderr for a message: whole lines where possible, joined by " | ".
    [[nodiscard]] std::string excerpt() const {
        std::string text;
        size_t end = tail_.find_last_not_of(" \r\n\t");
        end = end == tail_.npos ? 0 : end + 1;
        while (end > 0) {
            const size_t newline = tail_.find_last_of("\r\n", end - 1);
            const size_t start = newline == tail_.npos ? 0 : newline + 1;
            if (start < end) {
                std::string line =
                    printable(redact_command(std::string_view(tail_).substr(start, end - start)));
                if (text.empty() && line.size() > excerpt_size) {
                    size_t cut = line.size() - excerpt_size;
                    while (cut < line.size() &&
                           (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80)
                        ++cut;
                    line.replace(0, cut, "...");
                }
                if (!text.empty() && text.size() + line.size() > excerpt_size) break;
                if (!text.empty()) line.append(" | ");
                text.insert(0, line);
            }
            end = newline == tail_.npos ? 0 : newline;
        }
        return text.empty() ? "" : "; its stderr ends: " + text;
    }

    // How the child is: nothing while it runs. With `flags` WNOWAIT it stays to be waited for, and
    // its number stays taken, so that a signal to its group hits no stranger.
    std::optional<siginfo_t> look(int flags) const {
        siginfo_t info = {};
        int result = 0;
        do {
            result = ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | flags);
        } while (result != 0 && errno == EINTR);
        // ECHILD: the program ignores SIGCHLD, or waits for children that are not its own.
        if (result != 0) info.si_pid = -1;
        if (info.si_pid == 0) return std::nullopt;
        return info;
    }

    void wait_for_child() {
        if (!waiting_since_) waiting_since_ = Clock::now();
        std::chrono::microseconds pause(50);
        std::optional<siginfo_t> info;
        while (!(info = look(WNOWAIT))) {
            if (Clock::now() >= deadline(*waiting_since_)) fail(silence());
            pollfd fds[2] = {{.fd = err_.get(), .events = POLLIN, .revents = 0}, {}};
            if (wait_for_any(fds, cancel_, Clock::now() + pause)) drain();
            pause = std::min<std::chrono::microseconds>(pause * 2, milliseconds(20));
        }
        const bool good = info->si_code == CLD_EXITED && info->si_status == 0 && info->si_pid > 0;
        if (!good && info->si_pid > 0) ::kill(-child_, SIGTERM);  // what is left of the pipeline
        watch_->end();
        if (info->si_pid > 0) (void)look(0);
        child_ = -1;
        drain();
        out_.reset();
        err_.reset();
        if (!good) fail(bad_end(*info));
    }

    static constexpr const char* in_a_shell = "run the command in a shell to see what is wrong";

    [[nodiscard]] Error bad_end(const siginfo_t& info) const {
        if (info.si_pid < 0)
            return Error(SHF_E_CHILD,
                         "the status of the command was lost, so its output is unproven",
                         "do not ignore SIGCHLD and do not wait for unknown children");
        if (info.si_code != CLD_EXITED)
            return Error(
                SHF_E_CHILD,
                "the command was ended by signal " + signal_name(info.si_status) + excerpt(),
                in_a_shell);
        std::string help = in_a_shell;
        if (info.si_status == 126 || info.si_status == 127)
            help = "a program in the command was not found or cannot be run";
        else if (info.si_status == 128 + SIGPIPE)
            help = "a part of the pipeline was cut off before it had written everything";
        return Error(SHF_E_CHILD,
                     "the command ended with status " + std::to_string(info.si_status) + excerpt(),
                     help);
    }

    // Ends the child and all of its group: TERM, time to clean up, KILL; and leaves no zombie.
    void stop() noexcept {
        out_.reset();
        ::kill(-child_, SIGTERM);
        ::kill(-child_, SIGCONT);  // a stopped process takes TERM only when it continues
        auto deadline = Clock::now() + term_grace;
        bool ended = false;
        for (std::chrono::microseconds pause(50);;
             pause = std::min<std::chrono::microseconds>(pause * 2, milliseconds(20))) {
            if (!ended && look(WNOWAIT)) {
                ended = true;
                deadline = std::min(deadline, Clock::now() + group_grace);
            }
            // The end of stderr shows that the others of the pipeline are gone as well.
            discard();
            if ((ended && err_.get() < 0) || Clock::now() >= deadline) break;
            rest(pause);
        }
        ::kill(-child_, SIGKILL);
        watch_->end();
        deadline = Clock::now() + kill_grace;
        while (!look(0) && Clock::now() < deadline) rest(milliseconds(1));
        child_ = -1;
    }

    void discard() noexcept {
        char buffer[8192];
        for (int turns = 0; err_.get() >= 0 && turns < 16; ++turns) {
            const ssize_t size = ::read(err_.get(), buffer, sizeof buffer);
            if (size < 0 && errno != EINTR) return;
            if (size == 0) err_.reset();
        }
    }

    static void rest(std::chrono::microseconds time) noexcept {
        const timespec pause = {.tv_sec = 0, .tv_nsec = time.count() * 1000};
        ::nanosleep(&pause, nullptr);
    }

    const Cancel& cancel_;
    uint64_t timeout_;
    pid_t owner_ = ::getpid();
    pid_t child_ = -1;  // -1 once it has been waited for
    std::optional<PipeWatch> watch_;
    Descriptor out_, err_;
    std::string tail_;
    const bool hides_status_;  // the command says what to do when a program fails
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

const char* default_shell() {
    return ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

std::unique_ptr<Source> pipe_source(std::string command, const Options& options,
                                    const Cancel& cancel, const char* shell) {
    if (command.find_first_not_of(" \t\n") == command.npos)
        throw Error(SHF_E_USAGE, "pipe: without a command", "write pipe:COMMAND");
    return std::make_unique<PipeSource>(std::move(command), shell, options.pipe_timeout, cancel);
}

}  // namespace shf
