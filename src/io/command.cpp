#include "io/command.h"

#include "io/spawn.h"
#include "url/redact.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
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
    }
};

// Only our end: the flag belongs to the open file description, and the two ends have one each. A
// child that finds its stdout non-blocking loses bytes.
void unblock(const Descriptor& ours) {
    if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) throw system_error("fcntl", errno);
}

// Starts `shell -c command`. Returns its process id, which is that of its process group too.
pid_t start(const std::string& command, const char* shell, int in, int out, int err) {
    // Without pipefail the status of "curl ... | zstd -d" says nothing about curl. Only bash surely
    // has it; another shell is asked in a subshell, because an unknown option ends a shell at once
    // (XCU 2.8.1).
    const bool bash = std::string_view(shell).ends_with("/bash");
    std::string script =
        bash ? command : "(set -o pipefail) 2>/dev/null && set -o pipefail\n" + command;
    std::vector<std::string> words = {shell, "-c", std::move(script)};
    if (bash) words.insert(words.begin() + 1, {"-o", "pipefail"});
    return spawn({.program = shell,
                  .words = words,
                  .in = in,
                  .out = out,
                  .err = err,
                  .environment = environ});
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

void rest(std::chrono::microseconds time) noexcept {
    const timespec pause = {.tv_sec = 0, .tv_nsec = time.count() * 1000};
    ::nanosleep(&pause, nullptr);
}

// The ends that commands read from. A forked child has copies of them, and a command would not find
// the end of its input while it lives: a handler of fork() closes them.
class Inputs {
  public:
    // Never destroyed: writers may be closed by the destructors of static objects.
    static Inputs& get() {
        static Inputs& inputs = *new Inputs;
        return inputs;
    }
    void add(int fd) {
        const std::lock_guard lock(mutex_);
        fds_.push_back(fd);
    }
    void close(Descriptor& end) noexcept {
        const std::lock_guard lock(mutex_);
        std::erase(fds_, end.get());
        end.reset();
    }

  private:
    Inputs() {
        ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                         [] { get().forget(); });
    }
    // In the child, between its lock and unlock.
    void forget() noexcept {
        for (const int fd : fds_) ::close(fd);
        fds_.clear();
        mutex_.unlock();
    }

    std::mutex mutex_;
    std::vector<int> fds_;
};

}  // namespace

Command::Command(const std::string& command, const char* shell, Flow flow, uint64_t silence,
                 const Cancel& cancel)
    : cancel_(cancel), flow_(flow), silence_(silence) {
    Channel data, err;
    Descriptor& ours = flow == Flow::to_us ? data.read_end : data.write_end;
    const Descriptor& theirs = flow == Flow::to_us ? data.write_end : data.read_end;
    unblock(ours);
    unblock(err.read_end);
    ::fcntl(ours.get(), F_SETPIPE_SZ, static_cast<int>(pipe_size));
    // The watcher knows the command by the pipe that is its standard output.
    const int out = flow == Flow::to_us ? theirs.get() : err.write_end.get();
    watch_.emplace(out);
    if (flow == Flow::from_us) Inputs::get().add(ours.get());
    end_ = std::move(ours);
    err_ = std::move(err.read_end);
    try {
        child_ = start(command, shell, flow == Flow::to_us ? -1 : theirs.get(), out,
                       err.write_end.get());
    } catch (...) {
        close_end();
        throw;
    }
    watch_->started(child_);
}

Command::~Command() {
    if (!is_ours()) {
        // After a fork the command of the parent is not ours to end, nor can we wait for it.
        if (flow_ == Flow::from_us) (void)end_.release();  // the fork closed it
        return;
    }
    if (child_ > 0) stop();
    close_end();
}

Clock::time_point Command::deadline(Clock::time_point start) const {
    if (silence_ == 0) return Clock::time_point::max();
    return start + std::chrono::nanoseconds(silence_);
}

bool Command::wait(short events, Clock::time_point deadline) {
    for (;;) {
        pollfd fds[3] = {{.fd = end_.get(), .events = events, .revents = 0},
                         {.fd = err_.get(), .events = POLLIN, .revents = 0},
                         {}};
        if (!wait_for_any(fds, cancel_, deadline)) return false;
        if (fds[1].revents != 0) drain();
        if (fds[0].revents != 0) return true;
    }
}

void Command::close_end() {
    if (flow_ == Flow::from_us && end_.get() >= 0)
        Inputs::get().close(end_);
    else
        end_.reset();
}

void Command::drain() {
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
std::string Command::excerpt() const {
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
                while (cut < line.size() && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80)
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
std::optional<siginfo_t> Command::look(int flags) const {
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

bool Command::wait_for_end(Clock::time_point deadline) {
    std::chrono::microseconds pause(50);
    std::optional<siginfo_t> info;
    while (!(info = look(WNOWAIT))) {
        if (Clock::now() >= deadline) return false;
        pollfd fds[2] = {{.fd = err_.get(), .events = POLLIN, .revents = 0}, {}};
        if (wait_for_any(fds, cancel_, Clock::now() + pause)) drain();
        pause = std::min<std::chrono::microseconds>(pause * 2, milliseconds(20));
    }
    info_ = *info;
    // What is left of the pipeline.
    if (fault() && info_.si_pid > 0) ::kill(-child_, SIGTERM);
    watch_->end();
    if (info_.si_pid > 0) (void)look(0);
    child_ = -1;
    drain();
    close_end();
    err_.reset();
    return true;
}

std::optional<Error> Command::fault() const {
    if (info_.si_pid < 0)
        return Error(SHF_E_CHILD,
                     flow_ == Flow::to_us
                         ? "the status of the command was lost, so its output is unproven"
                         : "the status of the command was lost, so nothing proves what it did",
                     "do not ignore SIGCHLD and do not wait for unknown children");
    if (info_.si_code != CLD_EXITED)
        return Error(SHF_E_CHILD,
                     "the command was ended by signal " + signal_name(info_.si_status) + excerpt(),
                     try_in_a_shell);
    if (info_.si_status == 0) return std::nullopt;
    std::string help = try_in_a_shell;
    if (info_.si_status == 126 || info_.si_status == 127)
        help = "a program in the command was not found or cannot be run";
    else if (info_.si_status == 128 + SIGPIPE)
        help = "a part of the pipeline was cut off before it had written everything";
    return Error(SHF_E_CHILD,
                 "the command ended with status " + std::to_string(info_.si_status) + excerpt(),
                 help);
}

// Ends the child and all of its group: TERM, time to clean up, KILL; and leaves no zombie.
void Command::stop() noexcept {
    // A command that we write to must not take what it has for all there is: its input stays open.
    if (flow_ == Flow::to_us) close_end();
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

void Command::discard() noexcept {
    char buffer[8192];
    for (int turns = 0; err_.get() >= 0 && turns < 16; ++turns) {
        const ssize_t size = ::read(err_.get(), buffer, sizeof buffer);
        if (size < 0 && errno != EINTR) return;
        if (size == 0) err_.reset();
    }
}

}  // namespace shf
