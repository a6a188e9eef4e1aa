#pragma once

#include <signal.h>

namespace shf {

// For a thread of the library, at its start: the program's handlers run on the program's threads.
inline void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace shf
