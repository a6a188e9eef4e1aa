// A part of the Python package that does what a verb asks for.
#pragma once

#include "cli/library_options.h"
#include "cli/process.h"

#include <string>
#include <string_view>
#include <vector>

namespace cli {

// The Python of SHARDFEED_PYTHON, else python3.
std::string python_interpreter();

// Calls main() of a module, whose words are given one after the other.
class PythonProgram {
  public:
    // What is to be installed where the module is missing is `package`, as pip takes it in a shell.
    PythonProgram(const std::string& module, const std::string& package);

    // --NAME=VALUE; nothing for an empty value.
    void add(const std::string& name, const std::string& value);
    // --NAME, if it is wanted.
    void add_flag(const std::string& name, bool wanted);
    // --NAME=OPTION=VALUE for each option of the library that the command line has and `opener`
    // takes.
    void add_options(const std::string& name, const LibraryOptions& options,
                     std::string_view opener);

    // Runs it with the arguments that have no name; `input` and `output` as Command has them.
    // Returns the exit status, behind which the program has said why. Throws Failure.
    int run(const std::vector<std::string>& arguments, int input, int output);

  private:
    Command command_;
};

}  // namespace cli
