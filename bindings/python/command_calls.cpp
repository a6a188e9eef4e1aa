#include "command_calls.h"

#include "cli/command.h"

int32_t python_command(size_t count, char** words) {
    return cli::run({words, words + count});
}
