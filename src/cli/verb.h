// What a verb of the command is.
#pragma once

#include "cli/arguments.h"
#include "cli/library_options.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cli {

struct Example {
    const char* command;
    const char* effect;
};

// Declared and run once.
class Verb {
  public:
    Verb() = default;
    virtual ~Verb() = default;
    Verb(const Verb&) = delete;
    Verb& operator=(const Verb&) = delete;

    // Adds what the verb takes.
    virtual void declare(Arguments& arguments) = 0;
    // Which options of the library it takes as --NAME VALUE: those of these openers, as
    // SHF_OPTION_OPENERS names them ("stream writer").
    [[nodiscard]] virtual const char* openers() const { return ""; }
    [[nodiscard]] virtual std::vector<Example> examples() const = 0;
    // Returns the exit status. Throws Failure. `options` are those of the library that the command
    // line has.
    virtual int run(const LibraryOptions& options) = 0;
};

struct VerbEntry {
    const char* name;
    const char* also;     // what other tools call it, separated by blanks
    const char* summary;  // "concatenates shards"
    std::unique_ptr<Verb> (*make)();
};

// All verbs, in the order in which the help has them.
std::span<const VerbEntry> verbs();
// NULL when there is none of that name.
const VerbEntry* find_verb(std::string_view name);

}  // namespace cli
