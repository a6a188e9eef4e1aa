// The command shardfeed: finds the verb, reads its words, runs it.
#pragma once

#include <string>
#include <vector>

namespace cli {

// Runs the command; `words` come after the program's name. Returns the exit status, or ends the
// process by the signal that interrupted it.
int run(const std::vector<std::string>& words);

}  // namespace cli
