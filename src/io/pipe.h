// Shards that a shell command writes: pipe:COMMAND.
#pragma once

#include "io/source.h"

#include <string>

namespace shf {

struct Options;

// True when the option `secure` or SHARDFEED_SECURE=1 forbids child processes.
bool pipes_refused(const Options& options);
// The error for that.
[[noreturn]] void refuse_pipe();

// /bin/bash, for its pipefail, or /bin/sh.
const char* default_shell();

// The output of `command`, run by `shell` when the reader is opened and not before.
std::unique_ptr<Source> pipe_source(std::string command, const Options& options,
                                    const Cancel& cancel, const char* shell = default_shell());

}  // namespace shf
