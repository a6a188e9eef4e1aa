// What the command says of itself: help, the manual page, completions for shells. All of it comes
// from what the verbs declare.
#pragma once

#include "cli/arguments.h"
#include "cli/library_options.h"
#include "cli/verb.h"

#include <memory>
#include <string>
#include <string_view>

namespace cli {

// A verb with what it takes.
struct DeclaredVerb {
    explicit DeclaredVerb(const VerbEntry& entry);

    Arguments arguments;
    std::unique_ptr<Verb> verb;
    LibraryOptions options;
};

std::string overview();
std::string verb_page(const VerbEntry& entry);
// shardfeed(1), for man.
std::string manual_page();
// "bash", "zsh" or "fish"; empty for others.
std::string completions(std::string_view shell);

}  // namespace cli
