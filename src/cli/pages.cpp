#include "cli/pages.h"

#include "cli/shell.h"
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace cli {

namespace {

constexpr const char* purpose =
    "Makes, inspects, checks and changes shards for machine learning: tar and ZIP files of "
    "samples.";
constexpr const char* more_options =
    "Options of the library, such as --threads, --memory, --on-error or --s3-region, are taken "
    "too: "
    "shardfeed help options.";

struct StatusMeaning {
    int status;
    const char* meaning;
};
constexpr std::array<StatusMeaning, 3> statuses = {{
    {done, "done"},
    {failed, "it failed, or a check found a fault"},
    {wrong_command_line, "the command line is wrong"},
}};

// "-o,--output OUT"
std::string words_of(const ArgumentText& argument) {
    if (!argument.positional.empty()) return argument.positional;
    std::string made;
    for (const std::string& name : argument.shorts) made += (made.empty() ? "-" : ", -") + name;
    for (const std::string& name : argument.longs) made += (made.empty() ? "--" : ", --") + name;
    return argument.value.empty() ? made : made + " " + argument.value;
}

// "shardfeed cat [OPTION]... URL..."
std::string usage_of(const VerbEntry& entry, const Arguments& arguments) {
    std::string made = std::string("shardfeed ") + entry.name + " [OPTION]...";
    for (const ArgumentText& argument : arguments.texts()) {
        if (argument.positional.empty()) continue;
        const std::string word = argument.positional + (argument.many ? "..." : "");
        made += " " + (argument.required ? word : "[" + word + "]");
    }
    return made;
}

// For a line of roff: backslashes, hyphens, and a control character at its start.
std::string roff(std::string_view text) {
    std::string made;
    for (const char c : text) {
        if (c == '\\')
            made += "\\e";
        else if (c == '-')
            made += "\\-";
        else
            made += c;
    }
    if (!made.empty() && (made[0] == '.' || made[0] == '\'')) made.insert(0, "\\&");
    return made;
}

// Of an option, for a shell. Those of the library are also taken with "_".
std::vector<std::string> offered_longs(const ArgumentText& argument) {
    std::vector<std::string> made;
    for (const std::string& name : argument.longs)
        if (!argument.library || name.find('_') == std::string::npos) made.push_back(name);
    return made;
}

// The options of a verb and of the library.
std::vector<std::string> flags_of(const Arguments& arguments) {
    std::vector<std::string> made;
    for (const ArgumentText& argument : arguments.texts()) {
        for (const std::string& name : argument.shorts) made.push_back("-" + name);
        for (const std::string& name : offered_longs(argument)) made.push_back("--" + name);
    }
    return made;
}

// An argument in the manual page.
std::string described(const ArgumentText& argument) {
    return ".TP\n\\fB" + roff(words_of(argument)) + "\\fR\n" + roff(argument.help) + "\n";
}

// Of the page: that of SOURCE_DATE_EPOCH, with which builds are the same again, else today.
std::string page_date() {
    const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
    const std::time_t seconds = epoch ? std::strtoll(epoch, nullptr, 10) : std::time(nullptr);
    std::tm day = {};
    std::array<char, 32> made = {};
    if (!::gmtime_r(&seconds, &day) || !std::strftime(made.data(), made.size(), "%Y-%m-%d", &day))
        return "1970-01-01";
    return made.data();
}

std::string bash_completions() {
    std::string made =
        "# Completions of shardfeed for bash.\n"
        "_shardfeed() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} flags=\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W \"";
    for (const VerbEntry& entry : verbs()) made += std::string(entry.name) + " ";
    made +=
        "help completions\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n";
    for (const VerbEntry& entry : verbs()) {
        const DeclaredVerb declared(entry);
        made += std::string("    ") + entry.name + ") flags=\"";
        for (const std::string& flag : flags_of(declared.arguments)) made += flag + " ";
        made += "\" ;;\n";
    }
    made +=
        "    esac\n"
        "    [[ $word == -* ]] && COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
        "}\n"
        "complete -o default -o bashdefault -F _shardfeed shardfeed\n";
    return made;
}

std::string zsh_completions() {
    std::string made =
        "#compdef shardfeed\n# Completions of shardfeed for zsh.\n_shardfeed() {\n"
        "    local -a verbs flags\n    verbs=(\n";
    for (const VerbEntry& entry : verbs())
        made += "        " + shell_quoted(std::string(entry.name) + ":" + entry.summary) + "\n";
    made +=
        "    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    "
        "fi\n"
        "    case $words[2] in\n";
    for (const VerbEntry& entry : verbs()) {
        const DeclaredVerb declared(entry);
        made += std::string("    ") + entry.name + ") flags=(";
        for (const std::string& flag : flags_of(declared.arguments))
            made.append(" ").append(shell_quoted(flag));
        made += " ) ;;\n";
    }
    made +=
        "    esac\n    if [[ $words[CURRENT] == -* ]]; then\n        compadd -- $flags\n    else\n"
        "        _files\n    fi\n}\n_shardfeed \"$@\"\n";
    return made;
}

std::string fish_completions() {
    std::string made = "# Completions of shardfeed for fish.\n";
    for (const VerbEntry& entry : verbs()) {
        made += std::string("complete -c shardfeed -n __fish_use_subcommand -a ") + entry.name +
                " -d " + shell_quoted(entry.summary) + "\n";
        const DeclaredVerb declared(entry);
        for (const ArgumentText& argument : declared.arguments.texts()) {
            if (!argument.positional.empty()) continue;
            made += std::string("complete -c shardfeed -n '__fish_seen_subcommand_from ") +
                    entry.name + "'";
            for (const std::string& name : argument.shorts) made += " -s " + name;
            for (const std::string& name : offered_longs(argument)) made += " -l " + name;
            if (!argument.value.empty()) made += " -r";
            made += " -d " + shell_quoted(argument.help) + "\n";
        }
    }
    return made;
}

}  // namespace

DeclaredVerb::DeclaredVerb(const VerbEntry& entry) : verb(entry.make()) {
    verb->declare(arguments);
    options.declare(arguments, verb->openers());
}

std::string overview() {
    std::string made =
        wrapped(purpose, 0) + "\nusage: shardfeed VERB [OPTION]... [ARGUMENT]...\n\n";
    size_t width = 0;
    for (const VerbEntry& entry : verbs()) width = std::max(width, std::string(entry.name).size());
    for (const VerbEntry& entry : verbs()) {
        const std::string name = entry.name;
        made += "  " + name + std::string(width - name.size() + 2, ' ') + entry.summary + "\n";
    }
    made +=
        "\n  help VERB            what a verb takes, with examples\n"
        "  help options         options of the library, which verbs take too\n"
        "  completions SHELL    for bash, zsh or fish\n"
        "  --version\n\nExit status: ";
    for (const auto& [status, meaning] : statuses)
        made += (status == 0 ? "" : "; ") + std::to_string(status) + " " + meaning;
    return made + ".\n";
}

std::string verb_page(const VerbEntry& entry) {
    const DeclaredVerb declared(entry);
    std::string made = "usage: " + usage_of(entry, declared.arguments) + "\n\n" +
                       wrapped(declared.arguments.description(), 0) + "\n";
    for (const ArgumentText& argument : declared.arguments.texts())
        if (!argument.library) made += "  " + words_of(argument) + "\n" + wrapped(argument.help, 8);
    if (*declared.verb->openers()) made += "\n" + wrapped(more_options, 0);
    if (*entry.also) made += "\n" + wrapped(std::string("Also called: ") + entry.also, 0);
    if (!declared.verb->examples().empty()) made += "\nexamples:\n";
    for (const auto& [command, effect] : declared.verb->examples())
        made += std::string("  ") + command + "\n" + wrapped(effect, 8);
    return made;
}

std::string manual_page() {
    std::string made = ".TH SHARDFEED 1 " + page_date() + " \"shardfeed " + shf_version_string() +
                       "\" \"Manual of shardfeed\"\n.SH NAME\nshardfeed \\- make, inspect, check "
                       "and change shards\n"
                       ".SH SYNOPSIS\n.B shardfeed\n.I VERB\n[OPTION]... [ARGUMENT]...\n"
                       ".SH DESCRIPTION\n" +
                       roff(purpose) + "\n.PP\n" + roff(more_options) + "\n.SH VERBS\n";
    for (const VerbEntry& entry : verbs()) {
        const DeclaredVerb declared(entry);
        made += ".SS " + roff(usage_of(entry, declared.arguments)) + "\n" +
                roff(declared.arguments.description()) + "\n";
        for (const ArgumentText& argument : declared.arguments.texts())
            if (!argument.library && !argument.common) made += described(argument);
        for (const auto& [command, effect] : declared.verb->examples())
            made += ".PP\n.nf\n    " + roff(command) + "\n.fi\n" + roff(effect) + "\n";
    }
    made += ".SH OPTIONS OF ALL VERBS\n";
    const DeclaredVerb first(verbs().front());
    for (const ArgumentText& argument : first.arguments.texts())
        if (argument.common) made += described(argument);
    made += ".SH EXIT STATUS\n";
    for (const auto& [status, meaning] : statuses)
        made += ".TP\n.B " + std::to_string(status) + "\n" + roff(meaning) + ".\n";
    return made + ".SH SEE ALSO\n.BR shardfeed (3),\n.BR shf_options (3)\n";
}

std::string completions(std::string_view shell) {
    if (shell == "bash") return bash_completions();
    if (shell == "zsh") return zsh_completions();
    if (shell == "fish") return fish_completions();
    return {};
}

}  // namespace cli
