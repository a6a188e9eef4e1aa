#include "io/spawn.h"

#include "io/descriptor.h"

#include <spawn.h>
#include <unistd.h>

#include <fcntl.h>
#include <csignal>
#include <vector>

namespace shf {

namespace {

void check(int number, const char* doing) {
    if (number != 0) throw system_error(doing, number);
}

class FileActions {
  public:
    FileActions() { check(::posix_spawn_file_actions_init(&actions_), "spawn"); }
    ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
    posix_spawn_file_actions_t* get() { return &actions_; }

    // Makes `fd`, or /dev/null, the child's descriptor `number`.
    void set(int number, int fd) {
        const int mode = number == STDIN_FILENO ? O_RDONLY : O_WRONLY;
        check(fd < 0 ? ::posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", mode, 0)
                     : ::posix_spawn_file_actions_adddup2(&actions_, fd, number),
              "spawn");
    }

  private:
    posix_spawn_file_actions_t actions_ = {};
};

class Attributes {
  public:
    Attributes() { check(::posix_spawnattr_init(&attributes_), "spawn"); }
    ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    posix_spawnattr_t* get() { return &attributes_; }

  private:
    posix_spawnattr_t attributes_ = {};
};

}  // namespace

pid_t spawn(const Child& child) {
    FileActions actions;
    actions.set(STDIN_FILENO, child.in);
    actions.set(STDOUT_FILENO, child.out);
    actions.set(STDERR_FILENO, child.err);
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    // Ours are close-on-exec; this is about those of the program around us.
    check(::posix_spawn_file_actions_addclosefrom_np(actions.get(), STDERR_FILENO + 1), "spawn");
#endif
#endif
    Attributes attributes;
    sigset_t blocked, all;
    sigemptyset(&blocked);
    for (const int signal : child.blocked) sigaddset(&blocked, signal);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);  // their dispositions cannot be set (POSIX.1-2017, XSH sigaction())
    sigdelset(&all, SIGSTOP);
    // Ignored signals and the mask are inherited through exec (XSH 2.4.3 and exec). Python and Rust
    // ignore SIGPIPE, and "yes | head" never ends under that.
    check(::posix_spawnattr_setsigdefault(attributes.get(), &all), "spawn");
    check(::posix_spawnattr_setsigmask(attributes.get(), &blocked), "spawn");
    check(::posix_spawnattr_setpgroup(attributes.get(), 0), "spawn");
    check(::posix_spawnattr_setflags(attributes.get(), POSIX_SPAWN_SETSIGDEF |
                                                           POSIX_SPAWN_SETSIGMASK |
                                                           POSIX_SPAWN_SETPGROUP),
          "spawn");
    std::vector<char*> words;
    for (std::string& word : child.words) words.push_back(word.data());
    words.push_back(nullptr);
    pid_t pid = -1;
    check(::posix_spawn(&pid, child.program, actions.get(), attributes.get(), words.data(),
                        child.environment),
          "start the shell");
    return pid;
}

}  // namespace shf
