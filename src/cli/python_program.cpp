#include "cli/python_program.h"

#include <cstdlib>

namespace cli {

std::string python_interpreter() {
    const char* const named = std::getenv("SHARDFEED_PYTHON");
    return named && *named ? named : "python3";
}

PythonProgram::PythonProgram(const std::string& module, const std::string& package) {
    const std::string program =
        "import sys\n"
        "try:\n"
        "    from " +
        module +
        " import main\n"
        "except ImportError as error:\n"
        "    sys.exit(f\"shardfeed: {sys.executable}: {error}; help: pip install " +
        package +
        ", or name another Python in SHARDFEED_PYTHON\")\n"
        "sys.exit(main())\n";
    command_.words = {python_interpreter(), "-c", program};
}

void PythonProgram::add(const std::string& name, const std::string& value) {
    if (!value.empty()) command_.words.push_back("--" + name + "=" + value);
}

void PythonProgram::add_flag(const std::string& name, bool wanted) {
    if (wanted) command_.words.push_back("--" + name);
}

void PythonProgram::add_options(const std::string& name, const LibraryOptions& options,
                                std::string_view opener) {
    for (const std::string& pair : options.given_to(opener)) add(name, pair);
}

int PythonProgram::run(const std::vector<std::string>& arguments, int input, int output) {
    command_.words.emplace_back("--");
    command_.words.insert(command_.words.end(), arguments.begin(), arguments.end());
    command_.input = input;
    command_.output = output;
    std::string fault;
    try {
        fault = Process(command_).wait();
    } catch (const Failure& failure) {
        throw Failure(failed,
                      std::string(failure.what()) + "; help: name a Python in SHARDFEED_PYTHON");
    }
    if (fault.empty()) return done;
    if (fault == "its status is 1") return failed;
    if (fault == "its status is 2") return wrong_command_line;
    throw Failure(failed,
                  "the process of Python has ended: " + fault + "; help: see what it has printed");
}

}  // namespace cli
