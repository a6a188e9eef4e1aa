#include "cli/shell.h"

#include "cli/library.h"
#include "cli/process.h"
#include "cli/terminal.h"

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
    Process process({.words = {"/bin/sh", "-c", with_shard(command, shard)},
                     .environment = {"SHARDFEED_SHARD=" + shard}});
    const std::string fault = process.wait();
    if (!fault.empty())
        throw Failure(failed, printable(shard) + " is published, but the command " +
                                  printable(command) + " failed: " + fault +
                                  "; help: run it by hand for this shard and those that follow");
}

}  // namespace cli
