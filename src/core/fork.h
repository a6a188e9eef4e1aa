// Fork generation: how a handle finds out that it was carried into a child process, without a
// system call on every use.
#pragma once

#include <cstdint>

namespace shf {

// Grows by one in every forked child (through pthread_atfork; the child handler only counts).
uint64_t fork_generation() noexcept;

}  // namespace shf
