// Child processes.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

namespace shf {

// What a child gets. Of our descriptors it has these as 0, 1 and 2 and no others.
struct Child {
    const char* program;           // its path
    std::span<std::string> words;  // the command line, the name of the program first
    int in = -1;                   // -1: /dev/null, likewise below
    int out = -1;
    int err = -1;
    char* const* environment;
    std::span<const int> blocked = {};  // signals that it blocks from its first instruction on
};

// Starts it, in a process group of its own, with no signal ignored, and none blocked but those of
// `blocked`. Returns its process id, which is that of the group too. Throws Error.
pid_t spawn(const Child& child);

}  // namespace shf
