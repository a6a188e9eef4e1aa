// What the command says of itself: help, the manual page, completions for shells. All of it comes
// from what the verbs declare.
#pragma once

#include "cli/library_options.h"
#include "cli/verb.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace cli {

// A verb with the parser of its words.
struct DeclaredVerb {
    explicit DeclaredVerb(const VerbEntry& entry);

    CLI::App app;
    std::unique_ptr<Verb> verb;
    LibraryOptions options;
    bool quiet = false;
    bool verbose = false;
};

std::string overview();
std::string verb_page(const VerbEntry& entry);
// shardfeed(1), for man.
std::string manual_page();
// "bash", "zsh" or "fish"; empty for others.
std::string completions(std::string_view shell);

}  // namespace cli
