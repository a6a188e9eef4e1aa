#include "cli/arguments.h"

#include "cli/library.h"
#include "cli/terminal.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>

namespace cli {

Argument& Argument::type_name(const std::string& name) {
    option_->type_name(name);
    return *this;
}

Argument& Argument::required() {
    option_->required();
    return *this;
}

Argument& Argument::repeatable() {
    option_->expected(1)->take_all()->allow_extra_args(false);
    return *this;
}

Argument& Argument::expected(int count) {
    option_->expected(count);
    return *this;
}

Argument& Argument::expected(int least, int most) {
    option_->expected(least, most);
    return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& words) {
    option_->check(CLI::IsMember(words));
    return *this;
}

// CLI11's own checks of ranges print the limits of the type.
Argument& Argument::within(int64_t least, int64_t most) {
    const std::string range = std::to_string(least) + " to " + std::to_string(most);
    const auto check = [=](const std::string& word) {
        int64_t number = 0;
        const bool is_good =
            CLI::detail::lexical_cast(word, number) && number >= least && number <= most;
        return is_good ? std::string() : word + " is no number from " + range;
    };
    option_->check(CLI::Validator(check, range));
    return *this;
}

Argument& Argument::positive() {
    const auto check = [](const std::string& word) {
        double number = 0;
        const bool is_good = CLI::detail::lexical_cast(word, number) && number > 0;
        return is_good ? std::string() : word + " is no number above 0";
    };
    option_->check(CLI::Validator(check, ""));
    return *this;
}

Argument& Argument::excludes(const Argument& other) {
    option_->excludes(other.option_);
    return *this;
}

Arguments::Arguments() : app_(std::make_unique<CLI::App>()) {
    app_->set_help_flag("-h,--help", "what the verb does and takes");
    add_flag("-q,--quiet", quiet_, "print errors alone: no warnings, no progress");
    add_flag("-v,--verbose", verbose_, "print what is done too");
}

Arguments::~Arguments() = default;

template <typename Value>
Argument Arguments::add_option(const std::string& names, Value& value, const std::string& help) {
    return Argument(app_->add_option(names, value, help));
}

template <typename Value>
Argument Arguments::add_flag(const std::string& names, Value& value, const std::string& help) {
    return Argument(app_->add_flag(names, value, help));
}

// No group: the help of CLI11 leaves such options out, and so do the pages.
void Arguments::add_library_option(const std::string& names, std::string& value,
                                   const std::string& help) {
    app_->add_option(names, value, help)
        ->group("")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Arguments::add_library_flag(const std::string& names, std::string& value,
                                 const std::string& help) {
    app_->add_flag(names, value, help)
        ->group("")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

bool Arguments::has(const std::string& name) const {
    return app_->get_option_no_throw(name) != nullptr;
}

bool Arguments::parse(std::vector<std::string> words, const std::string& verb) {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
        app_->parse(words);
    } catch (const CLI::CallForHelp&) {
        return false;
    } catch (const CLI::ParseError& error) {
        throw Failure(wrong_command_line,
                      std::string(error.what()) + "; help: shardfeed help " + verb);
    }
    return true;
}

std::vector<ArgumentText> Arguments::texts() const {
    std::vector<ArgumentText> made;
    for (const CLI::Option* option : std::as_const(*app_).get_options()) {
        ArgumentText text;
        if (option->get_positional()) {
            text.positional = option->get_name(true);
        } else {
            text.shorts = option->get_snames();
            text.longs = option->get_lnames();
        }
        if (option->get_items_expected_max() > 0) text.value = option->get_type_name();
        text.help = option->get_description();
        text.many = option->get_items_expected_max() > 1;
        text.required = option->get_required();
        text.common = option->check_lname("help") || option->check_lname("quiet") ||
                      option->check_lname("verbose");
        text.library = option->get_group().empty();
        made.push_back(std::move(text));
    }
    return made;
}

template Argument Arguments::add_option(const std::string&, std::string&, const std::string&);
template Argument Arguments::add_option(const std::string&, std::optional<std::string>&,
                                        const std::string&);
template Argument Arguments::add_option(const std::string&, std::vector<std::string>&,
                                        const std::string&);
template Argument Arguments::add_option(const std::string&, double&, const std::string&);
template Argument Arguments::add_option(const std::string&, int&, const std::string&);
template Argument Arguments::add_option(const std::string&, int64_t&, const std::string&);
template Argument Arguments::add_option(const std::string&, uint32_t&, const std::string&);
template Argument Arguments::add_option(const std::string&, uint64_t&, const std::string&);
template Argument Arguments::add_option(const std::string&, std::optional<uint64_t>&,
                                        const std::string&);
template Argument Arguments::add_flag(const std::string&, bool&, const std::string&);
template Argument Arguments::add_flag(const std::string&, std::string&, const std::string&);

}  // namespace cli
