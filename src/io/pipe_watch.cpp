#include "io/pipe_watch.h"

#include "core/error.h"
#include "io/descriptor.h"
#include "io/spawn.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

// How it works. A process of ours, the watcher, reads lines from a socket whose other end nobody
// has but this process. That end is closed by the kernel when the process is gone for any reason,
// and by exec, for it is close-on-exec. The watcher then ends all the process groups it knows
// of: TERM, two seconds to clean up, KILL.
//
// Why not PR_SET_PDEATHSIG: it is tied to the thread that started the child, and threads end before
// the process does; it reaches the shell alone and not the rest of its pipeline; and it is
// forgotten when a program with other rights is run.
//
// A forked child has a copy of our end, which would hide our death: a handler of fork() closes it.
// A child that posix_spawn() or vfork() made has one until its exec, which is as it should be: the
// watcher sees the end of the lines only when no command is on its way any more.
//
// A command is announced before it is started, by the inode of the pipe that is its output, since
// its process id is not known yet. If we are gone before we can say it, the watcher looks for the
// shell that has this pipe as its output.
//
// One watcher serves all pipes of the process, so that a pipe costs a few short writes and not a
// process more. It is a shell: there is no program of ours that could be run instead, and a copy of
// this process (fork) may be as large as this process. It ends with the last stream and pipe, so
// that programs which wait for all their children do not hang.
constexpr const char* script = R"sh(cd /
all=
while read -r what key group; do
    kept=
    for entry in $all; do
        [ "${entry%%:*}" = "$key" ] || kept="$kept $entry"
    done
    all=$kept
    [ "$what" = - ] || all="$kept $key:$group"
done
groups=
for entry in $all; do
    case $entry in
    *:=*) for process in /proc/[0-9]*; do
            [ "$(readlink "$process/fd/1" 2>/dev/null)" = "pipe:[${entry#*:=}]" ] &&
                groups="$groups ${process#/proc/}"
        done ;;
    *) groups="$groups ${entry#*:}" ;;
    esac
done
for group in $groups; do
    kill -s TERM -- "-$group" 2>/dev/null
    kill -s CONT -- "-$group" 2>/dev/null
done
for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=
    for group in $groups; do
        kill -s 0 -- "-$group" 2>/dev/null && left="$left $group"
    done
    groups=$left
    [ "$groups" ] || exit 0
    sleep 0.1 2>/dev/null || sleep 1
done
for group in $groups; do
    kill -s KILL -- "-$group" 2>/dev/null
done
)sh";

// Blocked from the start of the watcher: a trap of its own would come too late for a signal that is
// sent while it starts.
constexpr int survived[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP};

struct Entry {
    uint64_t key;
    ino_t pipe;
    pid_t group;  // 0: not known yet
};

// "+ KEY GROUP", "+ KEY =INODE", "- KEY ..."
std::string line_of(char what, const Entry& entry) {
    std::string line(1, what);
    line.append(" ").append(std::to_string(entry.key)).append(" ");
    if (entry.group == 0) line.append("=").append(std::to_string(entry.pipe));
    if (entry.group != 0) line.append(std::to_string(entry.group));
    return line.append("\n");
}

class Watcher {
  public:
    // Never destroyed: streams may be closed by the destructors of static objects.
    static Watcher& get() {
        static Watcher& watcher = *new Watcher;
        return watcher;
    }

    uint64_t announce(ino_t pipe) {
        const std::lock_guard lock(mutex_);
        entries_.push_back({.key = ++last_key_, .pipe = pipe, .group = 0});
        tell('+', entries_.back());
        return last_key_;
    }

    void started(uint64_t key, pid_t group) {
        const std::lock_guard lock(mutex_);
        for (Entry& entry : entries_) {
            if (entry.key != key) continue;
            entry.group = group;
            tell('+', entry);
        }
    }

    void end(uint64_t key) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(entries_.begin(), entries_.end(),
                                        [key](const Entry& entry) { return entry.key == key; });
        if (found == entries_.end()) return;
        const Entry gone = *found;
        entries_.erase(found);
        if (entries_.empty() && stays_ <= 0)
            stop();
        else
            tell('-', gone);
    }

    void stay(int difference) noexcept {
        const std::lock_guard lock(mutex_);
        stays_ += difference;
        if (entries_.empty() && stays_ <= 0) stop();
    }

  private:
    Watcher() {
        ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                         [] { get().forget(); });
    }

    // In a forked child, between its lock and unlock.
    void forget() noexcept {
        socket_.reset();
        process_ = -1;
        stays_ = 0;
        entries_.clear();
        mutex_.unlock();
    }

    // A command is worth more than its watch: where there is no memory, descriptor or process
    // for the watcher, the next pipe tries again.
    void tell(char what, const Entry& entry) noexcept {
        try {
            if (process_ > 0 && send(line_of(what, entry))) return;
            start();
        } catch (const std::exception&) {
            stop();
        }
    }

    // False when the watcher is gone, or does not read.
    bool send(const std::string& line) const {
        // All or nothing: the line is shorter than what the socket takes at once. MSG_NOSIGNAL:
        // SIGPIPE may be what ends this program.
        return ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
               static_cast<ssize_t>(line.size());
    }

    // Starts a watcher that knows all entries, and only then ends the one that there was.
    void start() {
        int fds[2] = {-1, -1};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
            throw system_error("socketpair", errno);
        Descriptor ours, other;
        try {
            ours = Descriptor(fds[0]);
        } catch (...) {
            ::close(fds[1]);
            throw;
        }
        other = Descriptor(fds[1]);
        const char* path = std::getenv("PATH");  // for sleep and readlink
        std::string variable = std::string("PATH=") + (path ? path : "/usr/bin:/bin");
        char* environment[] = {variable.data(), nullptr};
        std::string words[] = {"sh", "-c", script, "shardfeed-pipe-watch"};
        const pid_t process = spawn({.program = "/bin/sh",
                                     .words = words,
                                     .in = other.get(),
                                     .environment = environment,
                                     .blocked = survived});
        std::swap(socket_, ours);
        const pid_t old = std::exchange(process_, process);
        for (const Entry& entry : entries_)
            if (!send(line_of('+', entry))) break;
        end_process(old);
    }

    void stop() noexcept {
        end_process(std::exchange(process_, -1));
        socket_.reset();
    }

    // By KILL, so that it ends nobody. Unless the program has waited for it already: then its
    // number may be that of a stranger.
    static void end_process(pid_t process) noexcept {
        if (process <= 0) return;
        siginfo_t info = {};
        const auto id = static_cast<id_t>(process);
        if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
        if (info.si_pid == 0) ::kill(process, SIGKILL);
        while (::waitid(P_PID, id, &info, WEXITED) != 0 && errno == EINTR) continue;
    }

    std::mutex mutex_;
    Descriptor socket_;   // our end
    pid_t process_ = -1;  // -1: none
    uint64_t last_key_ = 0;
    int64_t stays_ = 0;
    std::vector<Entry> entries_;
};

}  // namespace

PipeWatch::PipeWatch(int output) {
    struct stat state = {};
    if (::fstat(output, &state) != 0) throw system_error("fstat", errno);
    key_ = Watcher::get().announce(state.st_ino);
}

void PipeWatch::started(pid_t group) {
    Watcher::get().started(key_, group);
}

void PipeWatch::end() noexcept {
    if (!ended_ && generation_ == fork_generation()) Watcher::get().end(key_);
    ended_ = true;
}

PipeWatch::Stay::Stay() {
    Watcher::get().stay(1);
}

PipeWatch::Stay::~Stay() {
    if (generation_ == fork_generation()) Watcher::get().stay(-1);
}

}  // namespace shf
