// Commands of the user, which /bin/sh runs.
#pragma once

#include <string>

namespace cli {

// A word of a shell command that means exactly `text` (POSIX, Shell Command Language 2.2.2).
std::string shell_quoted(const std::string& text);

// Runs `command` with the name of a shard in place of each {} and %s, quoted; %% is a percent sign.
// It has SHARDFEED_SHARD in its environment, no standard input, and writes to standard error.
// Throws Failure when its status is not 0.
void run_for_shard(const std::string& command, const std::string& shard);

}  // namespace cli
