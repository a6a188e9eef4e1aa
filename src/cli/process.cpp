#include "cli/process.h"

#include "cli/library.h"
#include "cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace cli {

namespace {

constexpr int look_for_interrupts = 100;  // ms
constexpr int patience = 5000;            // ms from SIGTERM to SIGKILL

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> made;
    for (std::string& text : texts) made.push_back(text.data());
    made.push_back(nullptr);
    return made;
}

}  // namespace

Process::Process(const Command& command) {
    std::vector<std::string> words = command.words;
    std::vector<std::string> environment;
    for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
    environment.insert(environment.end(), command.environment.begin(), command.environment.end());

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (command.input < 0)
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&files, command.input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, command.output < 0 ? STDERR_FILENO : command.output,
                                     STDOUT_FILENO);
    if (!command.folder.empty())
        posix_spawn_file_actions_addchdir_np(&files, command.folder.c_str());

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // Signals reach it as they do a command of a shell, although they are blocked or ignored here.
    sigset_t none;
    sigemptyset(&none);
    sigset_t ignored_here = none;
    sigaddset(&ignored_here, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored_here);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    pid_t pid = 0;
    const int error = ::posix_spawnp(&pid, words[0].c_str(), &files, &attributes,
                                     pointers(words).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        throw Failure(failed, printable(words[0]) + " cannot be started: " + std::strerror(error));
    pid_ = pid;
    handle_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (handle_ >= 0) (void)::fcntl(handle_, F_SETFD, FD_CLOEXEC);
    interrupt_.emplace(this, [](void* process) {
        const pid_t group = static_cast<Process*>(process)->pid_;
        if (group != 0) (void)::kill(-group, SIGTERM);
    });
}

Process::~Process() {
    if (pid_ != 0) {
        (void)::kill(-pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    if (handle_ >= 0) (void)::close(handle_);
}

std::string Process::wait() {
    int waited = 0;  // ms since the interrupt, which sends SIGTERM
    pollfd end = {.fd = handle_, .events = POLLIN, .revents = 0};
    while (handle_ >= 0 && ::poll(&end, 1, look_for_interrupts) <= 0)
        if (interrupted() && (waited += look_for_interrupts) >= patience)
            (void)::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (status == 0) return "";
    return WIFSIGNALED(status) ? "it was ended by signal " + std::to_string(WTERMSIG(status))
                               : "its status is " + std::to_string(WEXITSTATUS(status));
}

}  // namespace cli
