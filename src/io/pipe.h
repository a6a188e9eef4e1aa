// Shards that a shell command writes, or takes: pipe:COMMAND.
#pragma once

#include "io/sink.h"
#include "io/source.h"

#include <string>

namespace shf {

struct Options;

// True when the option `secure` or SHARDFEED_SECURE=1 forbids child processes.
bool pipes_refused(const Options& options);
// The error for that.
[[noreturn]] void refuse_pipe();

// Throws Error(USAGE) for what is no command: the text behind "pipe:".
void require_command(const std::string& command);

// /bin/bash, for its pipefail, or /bin/sh.
const char* default_shell();

// The output of `command`, run by `shell` when the reader is opened and not before.
std::unique_ptr<Source> pipe_source(std::string command, const Options& options,
                                    const Cancel& cancel, const char* shell = default_shell());

// The input of `command`, which is started at once. publish() is what proves that it took all of
// it. Throws Error.
std::unique_ptr<Sink> pipe_sink(const std::string& command, const Options& options,
                                const Cancel& cancel, const char* shell = default_shell());

}  // namespace shf
