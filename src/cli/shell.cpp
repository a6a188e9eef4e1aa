#include "cli/shell.h"

#include "cli/library.h"
#include "cli/terminal.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

extern char** environ;

namespace cli {

namespace {

std::string with_shard(const std::string& command, const std::string& shard) {
    const std::string word = shell_quoted(shard);
    std::string made;
    for (size_t i = 0; i < command.size(); ++i) {
        const std::string two = command.substr(i, 2);
        if (two == "{}" || two == "%s")
            made += word;
        else if (two == "%%")
            made += '%';
        else {
            made += command[i];
            continue;
        }
        ++i;
    }
    return made;
}

// The status of the process as wait() has it, or -1 with errno.
int spawn_and_wait(const std::string& command, std::vector<char*>& environment) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    // The command gets Ctrl-C and SIGPIPE as from a shell.
    sigset_t none;
    sigemptyset(&none);
    sigset_t pipe_signal = none;
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string text = command;
    std::string shell = "sh";
    std::string flag = "-c";
    const std::array<char*, 4> words = {shell.data(), flag.data(), text.data(), nullptr};
    pid_t child = 0;
    const int error =
        ::posix_spawn(&child, "/bin/sh", &files, &attributes, words.data(), environment.data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = error;
    if (error != 0) return -1;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

}  // namespace

std::string shell_quoted(const std::string& text) {
    std::string made = "'";
    for (const char c : text)
        if (c == '\'')
            made += "'\\''";
        else
            made += c;
    return made + "'";
}

void run_for_shard(const std::string& command, const std::string& shard) {
    std::string variable = "SHARDFEED_SHARD=" + shard;
    std::vector<char*> environment;
    for (char** entry = environ; *entry; ++entry) environment.push_back(*entry);
    environment.push_back(variable.data());
    environment.push_back(nullptr);
    const int status = spawn_and_wait(with_shard(command, shard), environment);
    if (status == 0) return;
    std::string cause = std::strerror(errno);
    if (status >= 0)
        cause = WIFSIGNALED(status) ? "it was ended by signal " + std::to_string(WTERMSIG(status))
                                    : "its status is " + std::to_string(WEXITSTATUS(status));
    throw Failure(failed, printable(shard) + " is published, but the command " +
                              printable(command) + " failed: " + cause +
                              "; help: run it by hand for this shard and those that follow");
}

}  // namespace cli
