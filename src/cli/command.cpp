#include "cli/command.h"

#include "cli/interrupts.h"
#include "cli/pages.h"
#include "cli/terminal.h"
#include "cli/verb.h"

#include <new>

namespace cli {

namespace {

int usage(const std::string& message, const std::string& help) {
    say(message + "; help: " + help);
    return wrong_command_line;
}

// What is printed for these words that are no verb; wrong_command_line for others.
int run_without_verb(const std::vector<std::string>& words) {
    Output out;
    const std::string word = words.empty() ? "" : words[0];
    const std::string subject = words.size() > 1 ? words[1] : "";
    if (words.empty()) {
        say("no verb; help: shardfeed help");
        return wrong_command_line;
    }
    if (word == "--version") {
        out.write(std::string("shardfeed ") + shf_version_string() + "\n");
    } else if (word == "--help" || word == "-h" || (word == "help" && subject.empty())) {
        out.write(overview());
    } else if (word == "help" && subject == "options") {
        out.write(option_table("stream mix archive dataset writer"));
    } else if (word == "help") {
        const VerbEntry* entry = find_verb(subject);
        if (!entry) return usage("no verb " + printable(subject), "shardfeed help lists all");
        out.write(verb_page(*entry));
    } else if (word == "man") {
        out.write(manual_page());
    } else if (word == "completions") {
        const std::string script = completions(subject);
        if (script.empty()) return usage("completions for which shell?", "bash, zsh or fish");
        out.write(script);
    } else {
        return usage("no verb " + printable(word), "shardfeed help lists all");
    }
    out.flush();
    return done;
}

int run_verb(const VerbEntry& entry, const std::vector<std::string>& words) {
    DeclaredVerb declared(entry);
    Arguments& arguments = declared.arguments;
    if (!arguments.parse(declared.options.joined({words.begin() + 1, words.end()}), entry.name)) {
        Output out;
        out.write(verb_page(entry));
        out.flush();
        return done;
    }
    declared.options.apply(arguments.is_quiet()     ? SHF_LOG_ERROR
                           : arguments.is_verbose() ? SHF_LOG_INFO
                                                    : SHF_LOG_WARNING);
    return declared.verb->run(declared.options);
}

}  // namespace

int run(const std::vector<std::string>& words) {
    const Interrupts interrupts;
    int status = failed;
    try {
        const VerbEntry* entry = words.empty() ? nullptr : find_verb(words[0]);
        status = entry ? run_verb(*entry, words) : run_without_verb(words);
    } catch (const Failure& failure) {
        if (!interrupted()) say(failure.what());
        status = failure.status();
    } catch (const std::bad_alloc&) {
        say("out of memory; help: give a smaller --memory");
    } catch (const std::exception& error) {
        say(std::string(error.what()) +
            "; help: the system refused this; look at limits and rights");
    }
    interrupts.raise();
    return status;
}

}  // namespace cli
